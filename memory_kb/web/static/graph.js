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
  // Labels: those of the biggest first, as many as do not stand in each other's way.
  const order = [...data.nodes].sort((a, b) => (degree.get(b.id) || 0) - (degree.get(a.id) || 0));
  const isCentre = (node) => Boolean(box.dataset.centre) && (node.name === box.dataset.centre || node.href.includes(`id=${encodeURIComponent(box.dataset.centre)}&`));
  const radiusOf = (node, scale) => Math.max(size(node), 3 / scale);
  const label = (canvas, node, scale, taken) => {
    const longest = box.clientWidth < 500 ? 22 : 34;
    const title = node.name.length > longest ? `${node.name.slice(0, longest - 1)}…` : node.name;
    const isStrong = isCentre(node) || node === over;
    if (!isStrong && many && scale < 2.2 && taken.length >= Math.max(5, box.clientWidth / 80)) return;
    canvas.font = `${isStrong ? "600 " : ""}${12 / scale}px system-ui, sans-serif`;
    const half = canvas.measureText(title).width / 2 + 4 / scale;
    const top = node.y + radiusOf(node, scale) + 2 / scale;
    const left = graph.screen2GraphCoords(0, 0).x, right = graph.screen2GraphCoords(box.clientWidth, 0).x;
    const x = node.x > left && node.x < right ? Math.min(Math.max(node.x, left + half), right - half) : node.x;
    const place = [x - half, top, x + half, top + 15 / scale];
    if (!isStrong && taken.some((other) => place[0] < other[2] && other[0] < place[2] && place[1] < other[3] && other[1] < place[3])) return;
    taken.push(place);
    canvas.textAlign = "center";
    canvas.textBaseline = "top";
    canvas.lineWidth = 3 / scale;
    canvas.strokeStyle = colour("--surface");
    canvas.strokeText(title, x, top);
    canvas.fillStyle = colour("--ink");
    canvas.fillText(title, x, top);
  };
  document.querySelectorAll("[data-kind] circle").forEach((dot) => dot.setAttribute("fill", paint(dot.closest("[data-kind]").dataset.kind)));

  const graph = new window.ForceGraph(box)
    .width(box.clientWidth).height(box.clientHeight)
    .graphData(data)
    .linkColor(() => colour("--edge")).linkWidth(0.7).linkDirectionalArrowLength(3).linkDirectionalArrowRelPos(1)
    .linkLabel((link) => document.createTextNode(link.relation).textContent.replace(/[<>&]/g, ""))
    .nodeLabel(() => "")
    .warmupTicks(calm ? 120 : 20).cooldownTicks(calm ? 0 : 120)
    .nodeCanvasObject((node, canvas, scale) => {
      const radius = radiusOf(node, scale);
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
    })
    .onRenderFramePost((canvas, scale) => {
      const taken = [];
      const first = order.filter((node) => node === over || isCentre(node));
      [...first, ...order.filter((node) => !first.includes(node))].forEach((node) => label(canvas, node, scale, taken));
      box.dataset.labels = taken.length;
    })
    .nodePointerAreaPaint((node, paintColour, canvas) => {
      canvas.fillStyle = paintColour;
      canvas.beginPath();
      canvas.arc(node.x, node.y, radiusOf(node, graph.zoom()) + 3, 0, 2 * Math.PI);
      canvas.fill();
    })
    .onNodeHover((node) => { over = node; box.style.cursor = node ? "pointer" : ""; })
    .onNodeClick((node) => location.assign(node.href));
  graph.d3Force("charge").strength(many ? -45 : -120);
  // Parts that no link holds together would drift apart until all of it is small.
  graph.d3Force("together", (alpha) => data.nodes.forEach((node) => { node.vx -= 0.08 * alpha * node.x; node.vy -= 0.08 * alpha * node.y; }));
  let fitted = false;
  graph.onEngineStop(() => { if (!fitted) { fitted = true; graph.zoomToFit(0, 40); if (graph.zoom() > 2.6) graph.zoom(2.6); } box.dataset.ready = "1"; });
  window.addEventListener("resize", () => graph.width(box.clientWidth).height(box.clientHeight));
})();
