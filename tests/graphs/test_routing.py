"""Routes of edges avoid the boxes of other variables."""

from __future__ import annotations

import numpy as np
import pytest

from presage.graphs.layout import layered_positions
from presage.graphs.routing import curve_points, edge_routes

STRAIGHT = np.array([[0.0, 0.5]])


def boxes_met(places: np.ndarray, sizes: np.ndarray, edges: np.ndarray, routes: list[np.ndarray]) -> int:
    count = 0
    for (i, j), route in zip(edges, routes, strict=True):
        points = curve_points(places[i], places[j], route, 400)
        for k in range(len(places)):
            if k not in (i, j) and (np.abs(points - places[k]) < sizes[k] / 2 * 0.99).all(axis=1).any():
                count += 1
    return count


def test_an_edge_goes_around_a_box_in_between() -> None:
    places = np.array([[0.0, 0.0], [0.0, -1.0], [0.0, -2.0], [1.0, -1.0]])
    sizes, edges = np.full((4, 2), 0.5), np.array([[0, 2], [0, 3]])
    routes = edge_routes(places, sizes, edges)
    assert routes[1].tolist() == STRAIGHT.tolist()  # nothing in the way
    assert boxes_met(places, sizes, edges, [STRAIGHT] * 2) == 1
    assert boxes_met(places, sizes, edges, routes) == 0


@pytest.mark.parametrize(
    ("d", "share", "aspect", "seeds"), [(20, 0.12, 1.6, 10), (60, 0.05, 0.8, 3), (150, 0.02, 0.8, 1)]
)
def test_no_edge_of_a_layered_drawing_passes_behind_a_box(d: int, share: float, aspect: float, seeds: int) -> None:
    straight = routed = 0
    for seed in range(seeds):
        graph = np.triu(np.random.default_rng(seed).random((d, d)) < share, 1)
        places = layered_positions(graph, aspect) * (104.0, -80.0)
        boxes, edges = np.tile((74.0, 28.0), (d, 1)), np.argwhere(graph)
        straight += boxes_met(places, boxes, edges, [STRAIGHT] * len(edges))
        routed += boxes_met(places, boxes, edges, edge_routes(places, boxes + np.array([10.0, 12.0]), edges))
    assert straight > 50
    assert routed == 0


def test_edges_in_both_directions_are_apart() -> None:
    routes = edge_routes(np.array([[0.0, 0.0], [0.0, 1.0]]), np.full((2, 2), 0.1), np.array([[0, 1], [1, 0]]))
    assert all(route[0, 0] > 0.1 for route in routes)  # each to its own left


def test_an_edge_within_a_row_goes_above_or_below_it() -> None:
    places = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [1.5, -1.0]])
    sizes, edges = np.tile((0.8, 0.4), (5, 1)), np.array([[0, 3], [0, 1]])
    routes = edge_routes(places, sizes, edges)
    assert boxes_met(places, sizes, edges, routes) == 0
    assert routes[1].tolist() == STRAIGHT.tolist()


def test_boxes_without_a_size_are_no_obstacles() -> None:
    places = np.array([[0.0, 0.0], [0.0, -1.0], [0.0, -2.0]])
    sizes = np.array([[0.4, 0.4], [0.0, 0.0], [0.4, 0.4]])
    assert edge_routes(places, sizes, np.array([[0, 2]]))[0].tolist() == STRAIGHT.tolist()


def test_no_edges_need_no_routes() -> None:
    assert edge_routes(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros((0, 2))) == []
