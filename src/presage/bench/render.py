"""Tables and pictures of an experiment, from its recorded results alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from presage.bench.records import RunRecord, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["picture", "render", "table_text"]


def render(record: RunRecord, folder: Path) -> list[Path]:
    """Write table.md, table.tex for tables like the paper's, and the picture as png and pdf."""
    if not len(record.results):
        return []
    files = [write_text(folder / "table.md", table_text(record))]
    if record.experiment.kind in ("table", "calibration", "sachs"):
        from presage.bench.tables import build_table, latex

        text = latex(build_table(record.experiment, record.results, record.remark))
        files.append(write_text(folder / "table.tex", text))
    drawn = picture(record)
    if drawn is not None:
        from presage.bench.figures import save

        files += save(drawn, folder / record.experiment.name)
    return files


def table_text(record: RunRecord) -> str:
    """The numbers in Markdown."""
    from presage.bench.folder import folder_tables
    from presage.bench.grids import radar_grid, scaling_grid
    from presage.bench.tables import build_table, markdown

    experiment, frame = record.experiment, record.results
    if experiment.kind == "folder":
        return folder_tables(experiment, frame)
    if experiment.kind in ("radar", "scaling"):
        return (radar_grid if experiment.kind == "radar" else scaling_grid)(experiment, frame)
    return markdown(build_table(experiment, frame, record.remark))


def picture(record: RunRecord) -> Figure | None:
    """The picture of an experiment; None for plain tables and without results."""
    from presage.bench import figures

    experiment, frame = record.experiment, record.results
    columns = [c for c in dict.fromkeys(s.column for s in experiment.settings) if c in set(frame["column"])]
    sections = [s for s in dict.fromkeys(s.section for s in experiment.settings) if s in set(frame["section"])]
    if experiment.kind == "folder":
        return figures.folder_picture(frame)
    if experiment.kind == "radar":
        return figures.radar_picture(frame, columns, experiment.metrics)
    if experiment.kind == "scaling":
        return figures.scaling_picture(frame, columns)
    if experiment.kind == "calibration" and "calibration" in record.extras:
        return figures.calibration_picture(record.extras["calibration"], columns, sections)
    if experiment.kind == "sachs" and "edges" in record.extras:
        return figures.sachs_picture(record.extras["edges"], sections)
    return None
