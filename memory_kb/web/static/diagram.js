// Draws diagrams for the page around this frame: a text comes in, a picture goes back. The frame has terms of its own, since what
// draws writes styles into its page; what it draws is shown outside as a picture, which runs nothing.
"use strict";

const parser = new DOMParser();

async function draw({ number, text, isDark }) {
  window.mermaid.initialize({ startOnLoad: false, securityLevel: "strict", htmlLabels: false, theme: isDark ? "dark" : "default" });
  try {
    const { svg } = await window.mermaid.render(`diagram-${number}`, text);
    const root = parser.parseFromString(svg, "text/html").querySelector("svg");
    const [, , width, height] = root.getAttribute("viewBox").split(/[\s,]+/).map(Number);
    root.setAttribute("width", width);
    root.setAttribute("height", height);
    return { number, width, height, svg: new XMLSerializer().serializeToString(root) };
  } catch (error) {
    return { number, problem: String(error.message || error).split("\n")[0] };
  }
}

let before = Promise.resolve();
window.addEventListener("message", (event) => {
  if (event.origin !== location.origin || event.source !== window.parent) return;
  before = before.then(async () => window.parent.postMessage(await draw(event.data), location.origin));
});
window.parent.postMessage({ isReady: true }, location.origin);
