// Browser side of the page: uploads with a check of their size, variables dragged into tiers, links between graph and heat map.
(function () {
  "use strict";

  const page = () => document.getElementById("page");
  const tell = (id, data) => window.dash_clientside.set_props(id, { data: { ...data, at: Date.now() } });

  // Files -------------------------------------------------------------------------------------------------------
  function send(file, zone) {
    const limit = Number(page().dataset.limit);
    const role = zone.dataset.role;
    if (file.size > limit) {
      const size = (file.size / 2 ** 20).toFixed(0);
      tell("upload-event", {
        role: "refused",
        error: `the file ${file.name} has ${size} MB, but the limit is ${limit / 2 ** 20} MB; ` +
          "use fewer rows or columns, or the command line (presage discover), which has no limit.",
      });
      return;
    }
    const label = zone.querySelector("span");
    const before = label.textContent;
    zone.classList.add("busy");
    const request = new XMLHttpRequest();
    const query = new URLSearchParams({ session: page().dataset.session, name: file.name, role });
    request.open("POST", `upload?${query}`);
    request.setRequestHeader("X-Presage", "upload");
    request.upload.onprogress = (event) => {
      label.textContent = event.loaded < event.total
        ? `sending, ${Math.round((100 * event.loaded) / event.total)} %` : "reading …";
    };
    request.onloadend = () => {
      zone.classList.remove("busy");
      label.textContent = before;
      let answer = { error: "The server did not answer; is it still running?" };
      try { answer = JSON.parse(request.responseText); } catch (error) { /* keep the sentence */ }
      tell("upload-event", { role, ...answer });
    };
    request.send(file);
  }

  document.addEventListener("click", (event) => {
    const zone = event.target.closest(".drop");
    if (!zone) return;
    const input = document.createElement("input");
    input.type = "file";
    input.onchange = () => input.files.length && send(input.files[0], zone);
    input.click();
  });
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();  // a file dropped beside the zone must not replace the page
      const zone = event.target.closest && event.target.closest(".drop");
      document.querySelectorAll(".drop").forEach((z) => z.classList.toggle("over", kind === "dragover" && z === zone));
      if (kind === "drop" && zone && event.dataTransfer.files.length) send(event.dataTransfer.files[0], zone);
    });
  }

  // Tiers -------------------------------------------------------------------------------------------------------
  let drag = null;
  const tierAt = (event) => {
    const under = document.elementFromPoint(event.clientX, event.clientY);
    return under && under.closest(".tier");
  };
  document.addEventListener("pointerdown", (event) => {
    const chip = event.target.closest(".chip");
    if (!chip || event.button !== 0) return;
    event.preventDefault();
    drag = { chip, x: event.clientX, y: event.clientY, ghost: null };
  });
  document.addEventListener("pointermove", (event) => {
    if (!drag) return;
    if (!drag.ghost) {
      if (Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < 5) return;
      drag.ghost = drag.chip.cloneNode(true);
      drag.ghost.removeAttribute("id");
      drag.ghost.classList.add("ghost");
      document.body.appendChild(drag.ghost);
    }
    drag.ghost.style.left = `${event.clientX + 6}px`;
    drag.ghost.style.top = `${event.clientY + 6}px`;
    const tier = tierAt(event);
    document.querySelectorAll(".tier").forEach((t) => t.classList.toggle("over", t === tier));
  });
  const drop = (event) => {
    if (!drag) return;
    const { chip, ghost } = drag;
    drag = null;
    document.querySelectorAll(".tier").forEach((t) => t.classList.remove("over"));
    if (ghost) ghost.remove();
    // A click moves the variable one tier on, a drag to where it was dropped.
    const tier = ghost ? tierAt(event) : chip.closest(".tier").nextElementSibling || document.querySelector(".tier");
    if (event.type === "pointerup" && tier) tell("tier-move", { name: chip.dataset.name, tier: Number(tier.dataset.tier) });
  };
  document.addEventListener("pointerup", drop);
  document.addEventListener("pointercancel", drop);

  // Graph and heat map ------------------------------------------------------------------------------------------
  const cy = () => { const box = document.querySelector("#graph"); return box && box._cyreg && box._cyreg.cy; };
  const plot = () => document.querySelector("#heat .js-plotly-plot");

  function fitted(graph) {
    graph.fit(undefined, 26);
    if (graph.zoom() > 1.4) { graph.zoom(1.4); graph.center(); }  // few variables need no giant letters
  }

  function frame(i, j) {
    const gd = plot();
    if (!gd || !gd.layout) return;
    const kept = (gd.layout.shapes || []).filter((shape) => shape.name !== "pointed");
    const shapes = i === null ? kept : kept.concat([{
      type: "rect", name: "pointed", x0: j - 0.5, x1: j + 0.5, y0: i - 0.5, y1: i + 0.5,
      line: { color: "#f2b632", width: 3, dash: "dot" }, fillcolor: "rgba(0,0,0,0)",
    }]);
    if (shapes.length !== (gd.layout.shapes || []).length || i !== null) window.Plotly.relayout(gd, { shapes });
  }

  function watchGraph() {
    const graph = cy();
    if (!graph || graph.presageWatched) return;
    graph.presageWatched = true;
    graph.on("mouseover", "edge", (event) => frame(event.target.data("i"), event.target.data("j")));
    graph.on("mouseout", "edge", () => frame(null, null));
    window.presageGraph = graph;
  }
  setInterval(watchGraph, 700);
  let resized = 0;
  window.addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(() => { const graph = cy(); if (graph) { graph.resize(); fitted(graph); } }, 250);
  });

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.presage = {
    // Hovering over a cell marks the arrow and both its ends in the graph.
    point(hover) {
      const graph = cy();
      if (!graph) return window.dash_clientside.no_update;
      graph.elements(".pointed").removeClass("pointed");
      if (hover && hover.points && hover.points.length) {
        const { x: j, y: i } = hover.points[0];
        graph.$(`#e${i}-${j}, #n${i}, #n${j}`).addClass("pointed");
      }
      return window.dash_clientside.no_update;
    },
    // Fit the drawing when the variables were placed anew.
    fit(places) {
      setTimeout(() => { const graph = cy(); if (graph) fitted(graph); }, 120);
      return window.dash_clientside.no_update;
    },
  };
})();
