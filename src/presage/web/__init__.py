"""The page of `presage serve`: choose data, run, explore the result, add background knowledge, download files.

Nothing is computed here: the page calls `discover`, `Result`, `Knowledge` and `metrics`, and shows their results.

- `sources`: uploads, examples and simulations, each with the Python code for the same data
- `sessions`: the state of each open page; limited in size and time
- `jobs`, `worker`: runs in separate processes, which can be cancelled
- `view`, `exports`: a result as figures, lists, text and files
- `layout`, `data_callbacks`, `result_callbacks`, `app`: the page itself
"""
