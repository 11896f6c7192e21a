// Draws the link graph: a colour for each kind, a ring for each scope. The same links stand below it as a list.
"use strict";

let over = null;

(async () => {
  const box = document.querySelector("#graph");
  const answer = await fetch(box.dataset.from);
  if (!answer.ok) { box.textContent = "The graph cannot be had."; return; }
  const data = await answer.json();
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const isDark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  const kinds = [...document.querySelectorAll("[data-kind]")].map((item) => item.dataset.kind);
  const paint = (kind) => `hsl(${(kinds.indexOf(kind) * 137 + 210) % 360} ${isDark ? "55% 66%" : "52% 42%"})`;
  const dashes = { task: [1, 1], job: [3, 2], project: null, global: [] };
  const degree = new Map();
  data.links.forEach((link) => [link.source, link.target].forEach((key) => degree.set(key, (degree.get(key) || 0) + 1)));
  const size = (node) => 3 + Math.sqrt(degree.get(node.id) || 0);
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const many = data.nodes.length > 60;
  document.querySelectorAll("[data-kind] circle").forEach((dot) => dot.setAttribute("fill", paint(dot.closest("[data-kind]").dataset.kind)));

  const graph = new window.ForceGraph(box)
    .width(box.clientWidth).height(box.clientHeight)
    .graphData(data)
    .linkColor(() => colour("--edge")).linkWidth(0.7).linkDirectionalArrowLength(3).linkDirectionalArrowRelPos(1)
    .linkLabel((link) => document.createTextNode(link.relation).textContent.replace(/[<>&]/g, ""))
    .nodeLabel(() => "")
    .warmupTicks(calm ? 120 : 20).cooldownTicks(calm ? 0 : 120)
    .nodeCanvasObject((node, canvas, scale) => {
      const radius = size(node);
      canvas.beginPath();
      canvas.arc(node.x, node.y, radius, 0, 2 * Math.PI);
      canvas.fillStyle = paint(node.kind);
      canvas.globalAlpha = node.status === "active" || node.status === "compacted" ? 1 : 0.35;
      canvas.fill();
      canvas.globalAlpha = 1;
      if (dashes[node.scope]) {
        canvas.beginPath();
        canvas.setLineDash(dashes[node.scope]);
        canvas.arc(node.x, node.y, radius + 1.6, 0, 2 * Math.PI);
        canvas.strokeStyle = colour("--ink");
        canvas.lineWidth = 0.7;
        canvas.stroke();
        canvas.setLineDash([]);
      }
      const isCentre = box.dataset.centre && node.href.includes(`id=${encodeURIComponent(box.dataset.centre)}&`);
      if (isCentre || node === over || !many || scale > 2.2 || (degree.get(node.id) || 0) > 7) {
        const title = node.name.length > 34 ? `${node.name.slice(0, 33)}…` : node.name;
        canvas.font = `${isCentre || node === over ? "600 " : ""}${12 / scale}px system-ui, sans-serif`;
        canvas.textAlign = "center";
        canvas.textBaseline = "top";
        canvas.lineWidth = 3 / scale;
        canvas.strokeStyle = colour("--surface");
        canvas.strokeText(title, node.x, node.y + radius + 2 / scale);
        canvas.fillStyle = colour("--ink");
        canvas.fillText(title, node.x, node.y + radius + 2 / scale);
      }
    })
    .nodePointerAreaPaint((node, paintColour, canvas) => {
      canvas.fillStyle = paintColour;
      canvas.beginPath();
      canvas.arc(node.x, node.y, size(node) + 3, 0, 2 * Math.PI);
      canvas.fill();
    })
    .onNodeHover((node) => { over = node; box.style.cursor = node ? "pointer" : ""; })
    .onNodeClick((node) => location.assign(node.href));
  graph.d3Force("charge").strength(many ? -60 : -120);
  let fitted = false;
  graph.onEngineStop(() => { if (!fitted) { fitted = true; graph.zoomToFit(0, 40); if (graph.zoom() > 2.6) graph.zoom(2.6); } box.dataset.ready = "1"; });
  window.addEventListener("resize", () => graph.width(box.clientWidth).height(box.clientHeight));
})();
