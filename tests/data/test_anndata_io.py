"""AnnData out and back."""

import numpy as np
import pytest

from presage.data.anndata_io import store_probabilities
from presage.domain.catalog import simulate
from presage.errors import DataError
from presage.types import Dataset

anndata = pytest.importorskip("anndata")


@pytest.fixture(scope="module")
def genes() -> Dataset:
    return simulate("grn-ood", d=8, n=40, n_interventional=16, seed=3)


def same(left: Dataset, right: Dataset) -> None:
    assert np.array_equal(left.x, right.x)
    assert np.array_equal(left.interventions, right.interventions)
    assert np.array_equal(left.missing, right.missing)
    assert left.names == right.names
    assert left.kind == right.kind
    assert (left.graph is None) == (right.graph is None)
    if left.graph is not None:
        assert np.array_equal(left.graph, right.graph)
    assert set(left.annotations) == set(right.annotations)
    for key in left.annotations:
        assert np.array_equal(left.annotations[key], right.annotations[key])


def test_contents(genes: Dataset) -> None:
    adata = genes.to_anndata()
    assert adata.shape == (40, 8)
    assert np.array_equal(adata.X, genes.x)
    assert list(adata.var_names) == list(genes.names)
    assert list(adata.obs["target"][:24]) == [""] * 24
    for row in range(24, 40):
        assert adata.obs["target"].iloc[row] == genes.names[int(genes.interventions[row].argmax())]
    assert np.array_equal(adata.obs["cell_type"], genes.annotations["cell_type"])
    assert np.array_equal(adata.varp["graph"], genes.graph)


def test_there_and_back(genes: Dataset) -> None:
    same(Dataset.from_anndata(genes.to_anndata()), genes)


def test_through_a_file(genes: Dataset, tmp_path) -> None:
    genes.to_anndata().write_h5ad(tmp_path / "genes.h5ad")
    same(Dataset.from_anndata(anndata.read_h5ad(tmp_path / "genes.h5ad")), genes)


def test_missing_cells_and_several_targets() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 3))
    x[1, 2] = np.nan
    mask = np.zeros((6, 3), dtype=bool)
    mask[4, :2] = True
    dataset = Dataset(x=x, interventions=mask, names=("a", "b", "c"))
    adata = dataset.to_anndata()
    assert np.isnan(adata.X[1, 2])
    assert adata.obs["target"].iloc[4] == "a;b"
    same(Dataset.from_anndata(adata), dataset)
    del adata.layers["interventions"]
    same(Dataset.from_anndata(adata), dataset)


def test_foreign_sparse_counts() -> None:
    import pandas as pd
    from scipy.sparse import csr_matrix

    counts = np.array([[0.0, 3.0], [1.0, 0.0], [0.0, 0.0]])
    obs = pd.DataFrame({"target": ["", "b", None]}, index=["r0", "r1", "r2"])
    adata = anndata.AnnData(X=csr_matrix(counts), obs=obs, var=pd.DataFrame(index=["a", "b"]))
    dataset = Dataset.from_anndata(adata)
    assert dataset.kind == "counts"
    assert np.array_equal(dataset.x, counts)
    assert dataset.interventions.tolist() == [[False, False], [False, True], [False, False]]


def test_unknown_target_is_named() -> None:
    import pandas as pd

    obs = pd.DataFrame({"target": ["", "nobody"]}, index=["r0", "r1"])
    adata = anndata.AnnData(X=np.ones((2, 2)), obs=obs, var=pd.DataFrame(index=["a", "b"]))
    with pytest.raises(DataError, match="nobody"):
        Dataset.from_anndata(adata)


def test_a_row_annotation_may_not_hide_the_targets() -> None:
    dataset = Dataset(x=np.zeros((2, 1)), annotations={"target": np.zeros(2)})
    with pytest.raises(DataError, match="target"):
        dataset.to_anndata()


def test_probabilities_land_on_the_rows_and_columns_of_their_names() -> None:
    import pandas as pd

    adata = anndata.AnnData(X=np.ones((2, 4)), var=pd.DataFrame(index=list("abcd")))
    probabilities = np.array([[0.0, 0.9], [0.2, 0.0]])
    store_probabilities(adata, probabilities, ("d", "b"), {"model": "m"})
    expected = np.zeros((4, 4))
    expected[3, 1], expected[1, 3] = 0.9, 0.2
    assert np.array_equal(adata.varp["presage"].toarray(), expected)
    assert adata.uns["presage"]["model"] == "m"
    assert list(adata.uns["presage"]["variables"]) == ["d", "b"]
    with pytest.raises(DataError, match="no variable 'e'"):
        store_probabilities(adata, probabilities, ("d", "e"), {})
