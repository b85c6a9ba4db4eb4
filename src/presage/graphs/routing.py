"""Routes of edges in a drawing: curves that avoid the boxes of other variables."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

__all__ = ["curve_points", "edge_routes"]

_BENDS = (0.0, 0.07, 0.14, 0.21, 0.28, 0.36)
_WEIGHTS = (0.5, 0.3, 0.7, 0.12, 0.88)  # places of the control point along the edge, the middle first
_POINTS = 48  # checked along each part of a curve, at least
_APART = 0.14  # bend of the two curves of a pair with edges in both directions
_TILTS = (0.4, 0.2, 0.0)  # share of the free space beside a box that a curve may use by not running straight down
_LANES = 3  # edges that pass side by side between two boxes
_REUSE = 0.4  # extra length, in distances between rows, of a route for every edge in its lane already


def edge_routes(positions: np.ndarray, sizes: np.ndarray, edges: np.ndarray) -> list[np.ndarray]:
    """Control points of each edge, so that its curve meets as few boxes of other variables as possible.

    positions: [d, 2] centres. sizes: [d, 2] widths and heights of the boxes, with a margin; boxes of size 0 are no
    obstacles. edges: [m, 2] of indices. Returns m arrays [k, 2] of bends and weights: control points of an edge from a
    to b at a + weight * (b - a) + bend * (-(b - a)[1], (b - a)[0]); see `curve_points`.

    An edge is straight or a single arc where such a curve is free. Otherwise it passes every row of boxes on its way
    through a gap, along the shortest such path.

    >>> places = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    >>> [route.round(2).tolist() for route in edge_routes(places, np.full((3, 2), 0.4), np.array([[0, 1], [0, 2]]))]
    [[[0.0, 0.5]], [[0.21, 0.5]]]
    """
    positions, sizes = np.asarray(positions, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    edges = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    half = sizes.reshape(-1, 2) / 2.0
    pairs = {(int(i), int(j)) for i, j in edges}
    lanes = _rows_of(positions, half)
    routes = []
    for i, j in edges:
        start, end = positions[i], positions[j]
        others = np.flatnonzero((half > 0).all(axis=1))
        others = others[(others != i) & (others != j)]
        boxes = (positions[others], half[others])
        arc, met = _arc(start, end, boxes, both_ways=(int(j), int(i)) in pairs)
        if met:
            tilted = [_relative(start, end, _through_gaps(start, end, half[[i, j]], lanes, tilt)) for tilt in _TILTS]
            count = [_boxes_met(curve_points(start, end, path)[None], *boxes)[0] for path in tilted]
            found = int(np.argmin(count))
            if count[found] < met:
                arc = tilted[found]
                _use(lanes, curve_points(start, end, arc))
        routes.append(arc)
    return routes


def curve_points(start: np.ndarray, end: np.ndarray, route: np.ndarray, points: int = _POINTS) -> np.ndarray:
    """Points [p, 2] along a route: quadratic Bezier curves that join half-way between successive control points."""
    along = np.asarray(end, dtype=np.float64) - start
    normal = np.array([-along[1], along[0]])
    controls = start + route[:, 1:] * along + route[:, :1] * normal  # [k, 2]
    joints = np.vstack([start, (controls[1:] + controls[:-1]) / 2.0, end])  # [k + 1, 2]
    t = np.linspace(0.0, 1.0, points)[:, None, None]
    curves = (1 - t) ** 2 * joints[:-1] + 2 * t * (1 - t) * controls + t**2 * joints[1:]  # [p, k, 2]
    flat: np.ndarray = curves.swapaxes(0, 1).reshape(-1, 2)
    return flat


def _relative(start: np.ndarray, end: np.ndarray, controls: np.ndarray) -> np.ndarray:
    """Control points [k, 2] as bends and weights."""
    along, offset = end - start, controls - start
    normal = np.array([-along[1], along[0]])
    return np.column_stack([offset @ normal, offset @ along]) / max(float(along @ along), 1e-12)


def _arc(
    start: np.ndarray, end: np.ndarray, boxes: tuple[np.ndarray, np.ndarray], *, both_ways: bool
) -> tuple[np.ndarray, float]:
    """The flattest arc that meets the fewest boxes, as a route [1, 2], and how many it meets."""
    signed = np.array([sign * bend for bend in _BENDS for sign in ((1.0, -1.0) if bend else (1.0,))])
    bends = signed[signed >= _APART] if both_ways else signed
    smallest = float(boxes[1].min(initial=np.inf))
    points = int(np.clip(2.0 * np.hypot(*(end - start)) / smallest, _POINTS, 10 * _POINTS))  # no box fits between two
    best = (np.inf, 0.0, 0.5)
    for weight in _WEIGHTS:
        curves = np.stack([curve_points(start, end, np.array([[bend, weight]]), points) for bend in bends])
        cost = _boxes_met(curves, *boxes) + 0.05 * (np.abs(bends) + 0.3 * abs(weight - 0.5))
        found = int(np.argmin(cost))
        best = min(best, (float(cost[found]), float(bends[found]), weight))
        if best[0] < 1.0:
            break
    return np.array([best[1:]]), float(np.floor(best[0]))


def _boxes_met(curves: np.ndarray, centres: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Number of boxes that each curve [c, p, 2] meets: [c]."""
    low, high = curves.min(axis=(0, 1)), curves.max(axis=(0, 1))
    near = ((centres + half >= low) & (centres - half <= high)).all(axis=1)
    inside = (np.abs(curves[:, :, None] - centres[near]) < half[near]).all(axis=-1)  # [c, p, k]
    met: np.ndarray = inside.any(axis=1).sum(axis=1).astype(np.float64)
    return met


@dataclass
class _Row:
    """A row of boxes: its height on the page, its half height, and the lanes of its gaps.

    lanes: [m] horizontal positions. room: [m] free space on either side. used: [m] edges in each lane so far.
    """

    y: float
    half: float
    lanes: np.ndarray
    room: np.ndarray
    used: np.ndarray


def _rows_of(positions: np.ndarray, half: np.ndarray) -> list[_Row]:
    """Rows of boxes from small y to large y, where boxes whose heights overlap are in one row."""
    shown = np.flatnonzero((half > 0).all(axis=1))
    groups: list[list[int]] = []
    for j in shown[np.argsort(positions[shown, 1], kind="stable")]:
        last = groups[-1][0] if groups else None
        if last is not None and positions[j, 1] - positions[last, 1] < half[j, 1] + half[last, 1]:
            groups[-1].append(int(j))
        else:
            groups.append([int(j)])
    lane = float(half[shown, 1].max(initial=1.0)) / 3.0
    return [_row(positions[group], half[group], lane) for group in groups]


def _row(centres: np.ndarray, half: np.ndarray, lane: float) -> _Row:
    order = np.argsort(centres[:, 0])
    left, right = (centres - half)[order, 0], (centres + half)[order, 0]
    lanes, room = [], []
    for low, high in zip(right[:-1], left[1:], strict=True):
        if high <= low:
            continue
        count = int(np.clip((high - low) // lane, 1, 2 * _LANES + 1))
        places = low + (high - low) * (np.arange(count) + 1.0) / (count + 1.0)
        lanes += places.tolist()
        room += np.minimum(places - low, high - places).tolist()
    steps = lane * (np.arange(2 * _LANES) + 1.0)
    lanes += [*(left[0] - steps).tolist(), *(right[-1] + steps).tolist()]
    room += 2 * steps.tolist()
    y = float(centres[:, 1].mean())
    high = float(np.abs(centres[:, 1] - y).max() + half[:, 1].max())
    return _Row(y, high, np.array(lanes), np.array(room), np.zeros(len(lanes)))


def _through_gaps(start: np.ndarray, end: np.ndarray, half: np.ndarray, rows: list[_Row], tilt: float) -> np.ndarray:
    """Control points [k, 2] of the shortest curve that passes all rows between two boxes through gaps.

    half: [2, 2] half sizes of the two boxes. tilt: share of the free space beside a box that slanted curves may use.
    """
    low, high = sorted((start[1], end[1]))
    between = [row for row in rows if low + row.half < row.y < high - row.half]
    if start[1] > end[1]:
        between.reverse()
    if not between:
        return _beside_row(start, end, rows)
    first, last = (
        _Row(at[1], size[1], at[:1], size[:1], np.zeros(1)) for at, size in ((start, half[0]), (end, half[1]))
    )
    stops = [first, *between, last]
    chosen = _shortest(stops)
    xs = np.array([row.lanes[k] for row, k in zip(stops, chosen, strict=True)])
    ys = np.array([row.y for row in stops])
    controls = []
    for k, row in enumerate(stops):
        before, after = max(k - 1, 0), min(k + 1, len(stops) - 1)
        steepest = tilt * row.room[chosen[k]] / row.half
        slope = np.clip((xs[after] - xs[before]) / (ys[after] - ys[before]), -steepest, steepest)
        for neighbour in {before, after} - {k}:
            way = float(np.sign(neighbour - k))
            step = 0.5 * (ys[neighbour] - ys[k])
            controls.append((k + 0.2 * way, xs[k] + slope * step, ys[k] + step))
            if tilt == 0.0:  # a second point above and below makes the curve exactly vertical beside the box
                controls.append((k + 0.1 * way, xs[k], ys[k] + float(np.sign(step)) * row.half))
    return np.array(sorted(controls))[:, 1:]


def _beside_row(start: np.ndarray, end: np.ndarray, rows: list[_Row]) -> np.ndarray:
    """Control points between two boxes of the same row, or of two rows without another one between them."""
    ys = np.array([row.y for row in rows])
    apart = float(np.diff(ys).min()) if len(ys) > 1 else 4.0 * rows[0].half if rows else 0.0
    if abs(start[1] - end[1]) < 0.5 * apart:
        level = start[1] + 0.5 * apart * (1.0 if start[1] <= ys.mean() else -1.0)
        return np.array([(start[0], level), (end[0], level)])
    middle = 0.5 * (start[1] + end[1])
    return np.array([(start[0], middle), (end[0], middle)])


def _shortest(rows: list[_Row]) -> list[int]:
    """The lane of every row on the shortest path from the first to the last one; lanes in use count as longer."""
    cost, back = np.zeros(len(rows[0].lanes)), []
    for before, row in pairwise(rows):
        high = abs(row.y - before.y)
        dx = np.abs(row.lanes - before.lanes[:, None])
        steps = np.hypot(dx, high) + dx**2 / (4.0 * high) + _REUSE * high * row.used  # [lanes before, lanes]
        total = cost[:, None] + steps
        back.append(np.argmin(total, axis=0))
        cost = total.min(axis=0)
    found = [int(np.argmin(cost))]
    for came_from in reversed(back):
        found.append(int(came_from[found[-1]]))
    return found[::-1]


def _use(rows: list[_Row], points: np.ndarray) -> None:
    """Count an edge in the lanes that its curve passes."""
    for row in rows:
        near = np.abs(points[:, 1] - row.y) < row.half
        if near.any() and len(row.lanes):
            x = points[near][int(np.argmin(np.abs(points[near, 1] - row.y))), 0]
            nearest = int(np.argmin(np.abs(row.lanes - x)))
            if abs(row.lanes[nearest] - x) < max(row.room[nearest], 1e-9):
                row.used[nearest] += 1.0
