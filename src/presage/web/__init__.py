"""The page of `presage serve`: bring data, run, look at the answer, add what you know, take it away.

Nothing is computed here: the page calls `discover`, `Result`, `Knowledge` and `metrics`, and shows what they say.

- `sources`: where data comes from, and the Python that would bring the same data
- `sessions`: what the server remembers of each open page; bounded and forgotten after a while
- `jobs`, `worker`: runs in processes of their own, which can be cancelled
- `view`, `words`: an answer as pictures, lists and text
- `layout`, `data_callbacks`, `answer_callbacks`, `app`: the page itself
"""
