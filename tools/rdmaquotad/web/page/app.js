// Asks the sidecar every second, and shows the page that the address names.
import {render, el} from "./dom.js";
import {devicePage} from "./device.js";
import {eventsPage} from "./events.js";
import {clean, clock, command} from "./format.js";
import {route} from "./links.js";
import {Model} from "./model.js";
import {nodePage} from "./node.js";
import {overview} from "./overview.js";
import {drawTrend, series, tenantPage} from "./tenant.js";
import {tenantsPage} from "./tenants.js";

const interval = 1000;
const main = document.getElementById("main");
const status = document.getElementById("status");  // read out by screen readers; the time is not
const time = document.getElementById("time");
let model = null;
let extra = {};  // what the page asked for beside the state
let hours = new Map();
let hoursAsked = -Infinity;
let timer = 0;

// The secret part of the path, which the address with the token leads to; see web_sessions.hpp. Who came by a link and had to
// get an address first is led to what the link was of.
function place() {
    const given = new URLSearchParams(location.search).get("place");
    if (given) {
        localStorage.setItem("place", given);
        history.replaceState(null, "", location.pathname + (location.hash || (localStorage.getItem("wanted") ?? "#/")));
        localStorage.removeItem("wanted");
    }
    return localStorage.getItem("place") ?? "all";
}

// JSON as text; null: there is no such thing.
async function ask(path) {
    for (const where of new Set([place(), "all"])) {
        const answer = await fetch(`/data/${where}/${path}`);
        if (answer.ok) {
            return answer.text();
        }
        if (answer.status !== 401) {
            return null;
        }
    }
    throw new Error("locked");
}

// What the page needs beside the state.
async function askExtra() {
    const [page, name, , pid] = route();
    if (page === "tenant" && model.byName.has(name)) {
        const detail = model.byName.get(name).sum ? null : ask(`tenant?${new URLSearchParams({name, ...(pid === undefined ? {} : {pid})})}`);
        const shown = series(model, name);
        const query = shown && new URLSearchParams({tenant: name, device: shown.device, resource: shown.resource});
        const history = query ? ask(`history?${query}`) : null;
        return {detail: JSON.parse(await detail), history: JSON.parse(await history)};
    }
    return {};
}

// The last hour of all figures, every ten seconds.
async function askHours() {
    if (["", "device"].includes(route()[0]) && Date.now() - hoursAsked >= 10 * interval) {
        hoursAsked = Date.now();
        hours = new Map(JSON.parse(await ask("hours")).map(([tenant, device, resource, used]) => [[tenant, device, resource].join("\n"), used]));
    }
}

const pages = {
    "": () => overview(model),
    device: (name) => devicePage(model, name),
    events: () => eventsPage(model),
    node: () => nodePage(model),
    tenant: (name, _, pid) => tenantPage(model, name, pid === undefined ? null : Number(pid), extra.detail),
    tenants: () => tenantsPage(model),
};

// Draws what is known; how long that took is noted for the tests.
function show() {
    const begin = performance.now();
    const [page, ...words] = route();
    render(main, (pages[page] ?? pages[""])(...words));
    if (page === "tenant") {
        drawTrend(model, words[0], extra.history);
    }
    for (const tab of document.querySelectorAll("nav a")) {
        const here = tab.getAttribute("href") === `#/${page}`;
        here ? tab.setAttribute("aria-current", "page") : tab.removeAttribute("aria-current");
    }
    document.getElementById("host").textContent = clean(model.host);
    document.title = [...words, page, "rdmaquota", model.host].filter(Boolean).map(clean).join(" – ");
    document.documentElement.dataset.drawMs = (performance.now() - begin).toFixed(1);
}

function say(text, bad = false) {
    status.className = bad ? "bad" : "";
    if (status.textContent !== text) {
        status.textContent = text;
    }
}

async function update() {
    const begin = performance.now();
    const here = location.hash;
    await askHours();
    const state = await ask("state");
    const parse = performance.now();
    model = new Model(JSON.parse(state), hours);
    const built = performance.now() - parse;
    extra = await askExtra();
    show();
    const {dataset} = document.documentElement;
    dataset.updateMs = (built + Number(dataset.drawMs)).toFixed(1);
    dataset.wholeMs = (performance.now() - begin).toFixed(1);
    dataset.updates = String(Number(dataset.updates ?? 0) + 1);
    dataset.place = here;
    time.textContent = `as of ${clock(model.time)}`;
    say(model.all ? "All tenants" : "Your tenants");
}

function locked() {
    model = null;
    localStorage.setItem("wanted", location.hash || "#/");
    render(main, el("section", {}, el("h2", {}, "This page needs an address with a token"),
                    el("p", {}, "Type this in a shell on this node, and open what it prints:"), el("p", {}, command("rdmaquota", "web")),
                    el("p", {}, "Root sees all tenants, other users their own. The token changes whenever rdmaquotad starts.")));
    say("Locked", true);
}

async function refresh() {
    clearTimeout(timer);
    try {
        if (!document.hidden || model === null) {
            await update();
        }
    } catch (error) {
        if (error.message === "locked") {
            locked();
        } else {
            say(`No answer from rdmaquotad; the figures are of ${model ? clock(model.time) : "no time"}`, true);
            console.info(error);
        }
    }
    clearTimeout(timer);
    timer = setTimeout(refresh, interval);
}

document.getElementById("skip").onclick = () => main.focus();
window.addEventListener("hashchange", () => {
    window.scrollTo(0, 0);
    main.focus({preventScroll: true});
    refresh();
});
window.addEventListener("choice", () => {
    if (model !== null) {
        show();
        route()[0] === "tenant" && refresh();  // another trend
    }
});
document.addEventListener("visibilitychange", refresh);
refresh();
