"""Routes of edges avoid the boxes of other variables."""

from __future__ import annotations

import numpy as np

from presage.graphs.layout import layered_positions
from presage.graphs.routing import edge_bends


def curve(start: np.ndarray, end: np.ndarray, bend: float, weight: float) -> np.ndarray:
    """Points of the curve: [400, 2]."""
    along = end - start
    control = start + weight * along + bend * np.array([-along[1], along[0]])
    t = np.linspace(0, 1, 400)[:, None]
    return (1 - t) ** 2 * start + 2 * t * (1 - t) * control + t**2 * end


def boxes_met(places: np.ndarray, sizes: np.ndarray, edges: np.ndarray, bends: np.ndarray) -> int:
    count = 0
    for (i, j), route in zip(edges, bends, strict=True):
        points = curve(places[i], places[j], *route)
        for k in range(len(places)):
            if k not in (i, j) and (np.abs(points - places[k]) < sizes[k] / 2 * 0.9).all(axis=1).any():
                count += 1
    return count


def test_an_edge_goes_around_a_box_in_between() -> None:
    places = np.array([[0.0, 0.0], [0.0, -1.0], [0.0, -2.0], [1.0, -1.0]])
    sizes, edges = np.full((4, 2), 0.5), np.array([[0, 2], [0, 3]])
    bends = edge_bends(places, sizes, edges)
    assert bends[1].tolist() == [0.0, 0.5]  # nothing in the way
    assert boxes_met(places, sizes, edges, np.tile((0.0, 0.5), (2, 1))) == 1
    assert boxes_met(places, sizes, edges, bends) == 0


def test_routes_meet_at_most_a_quarter_of_the_boxes_that_straight_edges_meet() -> None:
    straight = routed = 0
    for seed in range(20):
        graph = np.triu(np.random.default_rng(seed).random((20, 20)) < 0.12, 1)
        places = layered_positions(graph) * 90.0
        sizes, edges = np.tile((74.0, 40.0), (20, 1)), np.argwhere(graph)
        straight += boxes_met(places, sizes, edges, np.tile((0.0, 0.5), (len(edges), 1)))
        routed += boxes_met(places, sizes, edges, edge_bends(places, sizes, edges))
    assert straight > 50
    assert routed <= straight / 4


def test_edges_in_both_directions_are_apart() -> None:
    bends = edge_bends(np.array([[0.0, 0.0], [0.0, 1.0]]), np.full((2, 2), 0.1), np.array([[0, 1], [1, 0]]))
    assert (bends[:, 0] > 0.1).all()  # each to its own left


def test_stiff_edges_rather_pass_behind_a_box_than_bend_far() -> None:
    places = np.array([[0.0, 0.0], [0.0, -1.0], [0.0, -2.0]])
    sizes = np.array([[0.1, 0.1], [1.2, 0.1], [0.1, 0.1]])
    assert edge_bends(places, sizes, np.array([[0, 2]]), stiffness=2.0)[0, 0] == 0.0
    assert abs(edge_bends(places, sizes, np.array([[0, 2]]))[0, 0]) > 0.5


def test_no_edges_need_no_bends() -> None:
    assert edge_bends(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros((0, 2))).shape == (0, 2)
