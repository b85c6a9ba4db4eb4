// Browser side of a result: the selected or hovered edge is marked in graph, heat map and table.
(function () {
  "use strict";

  const set = (id, props) => window.dash_clientside.set_props(id, props);
  window.dash_clientside = window.dash_clientside || {};
  const presage = (window.dash_clientside.presage = window.dash_clientside.presage || {});
  const nothing = () => window.dash_clientside.no_update;
  const cy = () => { const box = document.querySelector("#graph"); return box && box._cyreg && box._cyreg.cy; };
  const plot = () => document.querySelector("#heat .js-plotly-plot");
  let chosen = [];
  let focus = null;

  // Choosing ----------------------------------------------------------------------------------------------------
  const choose = (indices) => { set("chosen", { data: indices }); };
  const edgeOf = (element) => element && [Number(element.dataset.i), Number(element.dataset.j)];

  document.addEventListener("click", (event) => {
    const at = (selector) => event.target.closest && event.target.closest(selector);
    if (at("[data-i][data-j]")) choose(edgeOf(at("[data-i][data-j]")));
    else if (at("[data-variable]")) choose([Number(at("[data-variable]").dataset.variable)]);
    else if (at("#unchoose")) choose([]);
    else if (at("#turn")) choose([...chosen].reverse());
    else if (at("#focus-chosen") && chosen.length === 1) set("focus", { value: chosen[0] });
    else if (at("#widen")) {
      const on = document.getElementById("page").classList.toggle("enlarged");
      at("#widen").textContent = on ? "Reduce" : "Enlarge";
      window.dispatchEvent(new Event("resize"));  // graph and plots are resized
      if (on) document.querySelector(".graph-box").scrollIntoView({ block: "start" });
    }
    else if (at("#fit")) { set("focus", { value: null }); const graph = cy(); if (graph) fitted(graph, undefined, true); }
    else if (at("[data-sort]")) {
      const by = at("[data-sort]").dataset.sort;
      const now = at("th").getAttribute("aria-sort");
      const first = by !== "source" && by !== "target";
      set("table-sort", { data: { by, down: now === "none" ? first : now !== "descending" } });
    }
  });
  document.addEventListener("keydown", (event) => {
    const place = event.target;
    if (place.matches && place.matches("tr[data-i]")) {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(edgeOf(place)); }
      const next = event.key === "ArrowDown" ? place.nextElementSibling : event.key === "ArrowUp" ? place.previousElementSibling : null;
      if (next) { event.preventDefault(); next.focus(); }
    } else if (place.id === "graph-place") graphKey(event);
    if (event.key === "Escape" && !document.querySelector("dialog[open]") && chosen.length) choose([]);
  });

  function graphKey(event) {
    const graph = cy();
    if (!graph) return;
    const edges = graph.edges().not(".hidden").sort((a, b) => b.data("p") - a.data("p"));
    const now = edges.toArray().findIndex((e) => e.data("i") === chosen[0] && e.data("j") === chosen[1]);
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    if (event.key in steps && edges.length) {
      event.preventDefault();
      const next = edges[(now < 0 && steps[event.key] < 0 ? 0 : now + steps[event.key] + edges.length) % edges.length];
      choose([next.data("i"), next.data("j")]);
    } else if (event.key === "+" || event.key === "-") {
      event.preventDefault();
      const middle = { x: graph.width() / 2, y: graph.height() / 2 };
      graph.zoom({ level: graph.zoom() * (event.key === "+" ? 1.25 : 0.8), renderedPosition: middle });
    }
  }

  // Graph -------------------------------------------------------------------------------------------------------
  function fitted(graph, elements, smoothly) {
    if (!graph.nodes().length) return;
    const eles = elements && elements.length ? elements : graph.elements();
    const box = eles.boundingBox();
    const zoom = Math.min(1.4, (graph.width() - 40) / Math.max(box.w, 1), (graph.height() - 40) / Math.max(box.h, 1));
    const pan = {
      x: graph.width() / 2 - (zoom * (box.x1 + box.x2)) / 2, y: graph.height() / 2 - (zoom * (box.y1 + box.y2)) / 2,
    };
    if (smoothly) graph.animate({ zoom, pan }, { duration: 250 }); else graph.viewport({ zoom, pan });
  }

  function watch() {
    const graph = cy();
    if (!graph || graph.presageWatched) return;
    graph.presageWatched = true;
    window.presageGraph = graph;
    graph.on("tap", "edge", (event) => choose([event.target.data("i"), event.target.data("j")]));
    graph.on("tap", "node", (event) => choose([Number(event.target.id().slice(1))]));
    graph.on("mouseover", "edge", (event) => frame("pointed", event.target.data("i"), event.target.data("j")));
    graph.on("mouseout", "edge", () => frame("pointed", null, null));
    // The library caches the position of the graph on the screen. If the page above it grows, for example by a
    // warning, clicks would miss the edge under the pointer, so the cache is cleared before every event.
    const again = () => graph.renderer() && graph.renderer().invalidateContainerClientCoordsCache();
    for (const kind of ["pointerdown", "mousedown", "touchstart", "pointerenter", "wheel"]) {
      graph.container().addEventListener(kind, again, { capture: true, passive: true });
    }
    new ResizeObserver(() => { graph.resize(); fitted(graph); }).observe(graph.container());
  }

  // Heat map: both axes hold indices of variables as text ---------------------------------------------------------
  function position(gd, index) {
    return gd.data && gd.data[0] ? gd.data[0].x.indexOf(String(index)) : -1;
  }
  function frame(name, i, j) {
    const gd = plot();
    if (!gd || !gd.layout || !gd.data) return;
    const before = gd.layout.shapes || [];
    const kept = before.filter((shape) => shape.name !== name);
    const x = j === null ? -1 : position(gd, j);
    const y = i === null ? -1 : position(gd, i);
    const shapes = x < 0 || y < 0 ? kept : kept.concat([{
      type: "rect", name, x0: x - 0.5, x1: x + 0.5, y0: y - 0.5, y1: y + 0.5, layer: "above",
      line: { color: "#f2a100", width: 3, dash: name === "pointed" ? "dot" : "solid" }, fillcolor: "rgba(0,0,0,0)",
    }]);
    if (shapes.length || before.length) window.Plotly.relayout(gd, { shapes });
  }

  function watchHeat() {
    const gd = plot();
    if (!gd || !gd.on || gd.presageWatched) return;
    gd.presageWatched = true;
    gd.on("plotly_click", (event) => {
      const { x, y } = event.points[0];
      if (x !== y) choose([Number(y), Number(x)]);
    });
  }

  function neighbours(graph, index) {
    const node = graph.$(`#n${index}`);
    return node.length ? node.closedNeighborhood() : graph.collection();
  }

  // Hovering over a cell marks the edge and both variables in the graph.
  presage.point = (hover) => {
    const graph = cy();
    if (!graph) return nothing();
    graph.elements(".pointed").removeClass("pointed");
    if (hover && hover.points && hover.points.length) {
      const { x: j, y: i } = hover.points[0];
      graph.$(`#e${i}-${j}, #n${i}, #n${j}`).addClass("pointed");
    }
    return nothing();
  };

  // Show the whole graph when the variables were placed again.
  presage.fit = () => {
    setTimeout(() => { watch(); const graph = cy(); if (graph) { graph.resize(); fitted(graph); } }, 150);
    return nothing();
  };

  // Mark the selection, and fade everything outside the neighbourhood of the variable that was searched for.
  presage.mark = (picked, _elements, _figure, centre) => {
    const moved = centre !== focus;
    const sought = JSON.stringify(picked) !== JSON.stringify(chosen);
    chosen = picked || [];
    focus = typeof centre === "number" ? centre : null;
    setTimeout(() => {
      watch();
      watchHeat();
      const graph = cy();
      if (graph) {
        graph.batch(() => {
          graph.elements().removeClass("chosen faded centre");
          if (chosen.length === 1) graph.$(`#n${chosen[0]}`).addClass("chosen");
          if (chosen.length === 2) graph.$(`#e${chosen[0]}-${chosen[1]}, #h${chosen[0]}-${chosen[1]}`).addClass("chosen");
          if (focus !== null) {
            const near = neighbours(graph, focus);
            graph.elements().not(near.union(near.edgesWith(near))).addClass("faded");
            graph.$(`#n${focus}`).addClass("centre");
          }
        });
        if (moved) fitted(graph, focus === null ? undefined : neighbours(graph, focus), true);
      }
      frame("chosen", chosen.length === 2 ? chosen[0] : null, chosen.length === 2 ? chosen[1] : null);
      document.querySelectorAll("tr.picked").forEach((row) => row.classList.remove("picked"));
      const row = chosen.length === 2 && document.querySelector(`tr[data-i="${chosen[0]}"][data-j="${chosen[1]}"]`);
      if (row) {
        row.classList.add("picked");
        const box = document.getElementById("edge-table");
        if (sought && (row.offsetTop < box.scrollTop || row.offsetTop > box.scrollTop + box.clientHeight - 40)) {
          box.scrollTop = row.offsetTop - box.clientHeight / 2;
        }
      }
    }, 60);
    return nothing();
  };
})();
