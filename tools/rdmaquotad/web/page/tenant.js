// One tenant: what it uses of everything, a trend, its processes, its denials.
import {alertList, alerts, link} from "./alerts.js";
import {Trend} from "./charts.js";
import {el, table} from "./dom.js";
import {eventList} from "./events.js";
import {amount, clean, command, named} from "./format.js";
import {Model} from "./model.js";
import {churn} from "./overview.js";
import {figures, levelOf} from "./tenants.js";

const most = 100;  // processes at first
const trend = new Trend();
const choice = {tenant: null, cell: null, all: false};

const columns = [{title: "Device and resource"}, {title: "Used", number: true}, {title: "Of limit", number: true}, {title: "Limit", number: true},
                 {title: "Guarantee", number: true}, {title: "Soft", number: true}, {title: "Grace left", number: true},
                 {title: "Peak", number: true}, {title: "Debt", number: true}];

// The device and resource that the trend is of: the one chosen, else the one nearest to its limit.
export function series(model, name) {
    const tenant = model.byName.get(name);
    if (choice.tenant !== name) {
        Object.assign(choice, {tenant: name, cell: null, all: false});
    }
    if (!tenant || tenant.cells.length === 0) {
        return null;
    }
    const chosen = tenant.cells.find((cell) => choice.cell === model.key(cell.device, cell.resource));
    const cell = chosen ?? tenant.cells.reduce((a, b) => (Model.fill(b) > Model.fill(a) ? b : a));
    return {tenant: name, device: model.devices[cell.device], resource: model.resources[cell.resource].name, cell};
}

function cells(model, tenant, shown, changed) {
    return table(`What ${clean(tenant.name)} uses`, columns, tenant.cells.map((cell) => {
        const {name, unit} = model.resources[cell.resource];
        const key = model.key(cell.device, cell.resource);
        const button = el("button", {type: "button", class: "plain", "aria-pressed": String(cell === shown?.cell), onclick: () => {
            choice.cell = key;
            changed();
        }}, named(model.devices[cell.device]), ` ${name}`);
        return {key: String(key), class: levelOf(cell), cells: [button, ...figures(cell, unit)]};
    }), "It uses nothing, and has no limits on what is in use.");
}

function holdings(model, process) {
    return Object.entries(process.devices).flatMap(([device, resources]) => Object.entries(resources)
        .filter(([, {usage}]) => usage > 0).map(([name, {usage, limit}]) =>
            `${clean(device)} ${name} ${amount(usage, model.unit(model.resource(name)))}` +
            (limit === null ? "" : ` of ${amount(limit, model.unit(model.resource(name)))}`))).join(", ");
}

function processes(model, detail, pid, changed) {
    const wanted = pid === null ? detail.processes : detail.processes.filter((process) => process.pid === pid);
    const rows = (choice.all ? wanted : wanted.slice(0, most)).map((process) => ({
        key: `${process.pid}`, id: `pid-${process.pid}`,
        cells: [el("a", {href: `#/tenant/${encodeURIComponent(detail.name)}/pid/${process.pid}`}, `${process.pid}`),
                named(process.comm), named(process.user ?? process.uid), clean(process.cgroup ?? "–"), holdings(model, process)],
    }));
    const gone = pid !== null && wanted.length === 0;
    const others = pid === null ? null : el("p", {}, link.tenant(detail.name), ` has ${detail.all_processes} processes.`);
    return el("section", {"aria-labelledby": "processes"},
              el("h2", {id: "processes"}, pid === null ? `Processes (${detail.all_processes})` : `Process ${pid}`),
              gone ? el("p", {class: "empty"}, "It has no device open now.") :
                  table("Processes", [{title: "Pid"}, {title: "Command"}, {title: "User"}, {title: "Cgroup"}, {title: "Holds"}], rows, "None has a device open."),
              wanted.length > rows.length ? el("button", {type: "button", onclick: () => {
                  choice.all = true;
                  changed();
              }}, `Show ${wanted.length - rows.length} more`) : null, others,
              pid !== null ? el("p", {}, "Why was something denied to it: ", command("rdmaquota", "explain", "--pid", String(pid))) : null);
}

export function tenantPage(model, name, pid, detail, changed) {
    const tenant = model.byName.get(name);
    if (!tenant) {
        return [el("h2", {}, "Tenant ", named(name)), el("p", {class: "empty"}, "There is no such tenant, or you may not see it.")];
    }
    const shown = series(model, name);
    const here = alerts(model).filter((one) => one.tenant === name);
    const about = [`mode ${tenant.mode}`, `weight ${tenant.weight}`, tenant.sum ? "the sum of those below it" : `${tenant.processes} processes`];
    return [
        el("section", {}, el("h2", {}, "Tenant ", named(name)), el("p", {}, about.join(", ")),
           here.length === 0 ? null : alertList(here)),
        el("section", {"aria-labelledby": "use"}, el("h2", {id: "use"}, "What it uses"), cells(model, tenant, shown, changed)),
        shown === null ? null : el("section", {"aria-labelledby": "trend"},
            el("h2", {id: "trend"}, "Trend of ", shown.resource, " on ", named(shown.device)),
            el("div", {"data-own": true, "data-key": "trend"})),
        detail && !tenant.sum ? processes(model, detail, pid, changed) : null,
        el("section", {"aria-labelledby": "denials"}, el("h2", {id: "denials"}, "Its events"),
           eventList(model, model.events.filter((event) => event.tenant === name).slice(0, 20), "Its events", "None lately.")),
        churn(model, (rate) => rate.tenant === name),
    ];
}

// After the page stands: puts the chart in its place.
export function drawTrend(model, name, history) {
    const place = document.querySelector("[data-key=trend]");
    const shown = series(model, name);
    if (place === null || shown === null) {
        return;
    }
    if (trend.element.parentNode !== place) {
        place.replaceChildren(trend.element);
    }
    trend.update({title: `${shown.resource} of ${clean(name)} on ${clean(shown.device)}`, series: history, limit: shown.cell.limit,
                  unit: model.unit(shown.cell.resource), time: model.time, peaks: !model.byName.get(name).sum});
}
