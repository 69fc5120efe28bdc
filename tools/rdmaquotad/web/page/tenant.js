// One tenant: what it uses of everything, a trend, its processes, its denials.
import {alertList, alerts} from "./alerts.js";
import {Trend} from "./charts.js";
import {el} from "./dom.js";
import {eventList} from "./events.js";
import {amount, clean, command, named, reasons, span} from "./format.js";
import {choice, choose, link} from "./links.js";
import {Model} from "./model.js";
import {churn} from "./overview.js";
import {table} from "./table.js";
import {explained, figureColumns, levelOf} from "./tenants.js";

const most = 100;  // processes at first
const trend = new Trend();
const nameOf = (model, {device, resource}) => `${model.devices[device]} ${model.resources[resource].name}`;

// The device and resource that the trend is of: the one chosen, else the one nearest to its limit.
export function series(model, name) {
    const tenant = model.byName.get(name);
    if (!tenant || tenant.cells.length === 0) {
        return null;
    }
    const cell = tenant.cells.find((one) => nameOf(model, one) === choice("trend")) ??
        tenant.cells.reduce((a, b) => (Model.fill(b) > Model.fill(a) ? b : a));
    return {tenant: name, device: model.devices[cell.device], resource: model.resources[cell.resource].name, cell};
}

function cells(model, tenant, shown) {
    const button = ({cell, name}) => el("button", {
        type: "button", class: "plain", title: model.resources[cell.resource].words, "aria-pressed": String(cell === shown?.cell),
        onclick: () => choose("trend", name),
    }, named(name));
    const items = tenant.cells.map((cell) => ({cell, name: nameOf(model, cell), unit: model.unit(cell.resource),
                                               capacity: model.capacities.get(model.key(cell.device, cell.resource))}));
    return [table({id: "use", caption: `What ${clean(tenant.name)} uses`, items, sort: "-of-limit",
                   columns: [{title: "Device and resource", cell: button, value: ({name}) => name}, ...figureColumns],
                   row: ({cell, name}) => ({key: name, class: levelOf(cell)}), empty: "It uses nothing, and has no limits on what is in use."}),
            explained(tenant.cells)];
}

// Those that are limited, or have delayed calls.
function rates(model, {name, rates: all = []}) {
    if (all.length === 0) {
        return null;
    }
    const items = all.map(([device, rate, limit, configured, burst, calls, ms, reason]) =>
        ({...model.rates[rate], device: model.devices[device], limit, burst: burst ?? limit, calls, ms, reason}));
    const columns = [
        {title: "Device and rate", cell: ({device, name: rate, words}) => el("span", {title: words}, named(`${device} ${rate}`)),
         value: ({device, name: rate}) => `${device} ${rate}`},
        {title: "A second", number: true, value: ({limit}) => limit,
         cell: ({limit, unit, reason}) => [amount(limit, unit), reason === null ? null : el("small", {}, ` ${reasons[reason] ?? reason}`)]},
        {title: "Burst", number: true, cell: ({burst, unit}) => amount(burst, unit), value: ({burst}) => burst},
        {title: "Delayed calls", number: true, cell: ({calls}) => amount(calls, "count"), value: ({calls}) => calls},
        {title: "By", number: true, cell: ({calls, ms}) => (calls === 0 ? "–" : span(ms)), value: ({ms}) => ms},
    ];
    return el("section", {"aria-labelledby": "rates"}, el("h2", {id: "rates"}, "What it may do a second"),
              table({id: "rates", caption: `Rates of ${clean(name)}`, items, columns, row: ({device, name: rate}) => ({key: `${device} ${rate}`})}));
}

// A line for each device.
function holdings(model, process) {
    const held = Object.entries(process.devices).map(([device, resources]) => [device, Object.entries(resources)
        .filter(([, {usage}]) => usage > 0).map(([name, {usage, limit}]) => {
            const unit = model.unit(model.resource(name));
            return `${name}\u00a0${amount(usage, unit)}${limit === null ? "" : ` of ${amount(limit, unit)}`}`;
        })]);
    return el("ul", {class: "holds"}, held.filter(([, parts]) => parts.length > 0).map(([device, parts]) =>
        el("li", {}, el("b", {}, named(device)), " ", parts.join(" · "))));
}

// The node's pid, or what a process in a container has.
function pidOf(detail, {pid, container_pid: inner}) {
    const known = pid === null ? [] : [link.pid(detail.name, pid, `${pid}`)];
    return inner === undefined ? known : [...known, el("small", {}, ` ${inner} in its container`)];
}

// One that has no slot: it may be one that goes around the quota.
function elsewhere(model, name, pid) {
    const around = model.bypasses.filter((bypass) => bypass.pid === pid && bypass.tenant === name);
    return around.length === 0 ? el("p", {class: "empty"}, "It has no device open through the library now.") :
        around.map((bypass) => el("p", {}, link.process(bypass), " goes around the quota on ", link.device(bypass.device), ": ",
                                  model.bypassWords(bypass), bypass.cgroup ? ["; its cgroup is ", named(bypass.cgroup)] : "", "."));
}

function processes(model, detail, pid) {
    const user = (process) => String(process.user ?? process.uid);
    const columns = [
        {title: "Pid", cell: (process) => pidOf(detail, process), value: (process) => process.pid},
        {title: "Command", cell: ({comm}) => named(comm), value: ({comm}) => comm},
        {title: "User", cell: (process) => named(user(process)), value: user},
        {title: "Cgroup", sparse: true, cell: ({cgroup}) => clean(cgroup ?? "–"), value: ({cgroup}) => cgroup},
        {title: "Holds", cell: (process) => holdings(model, process)},
    ];
    const rows = table({
        id: "processes", caption: "Processes", columns, items: detail.processes, most, empty: "None has a device open.",
        row: (process) => ({key: `${process.pid ?? `${process.comm} ${detail.processes.indexOf(process)}`}`, id: process.pid === null ? null : `pid-${process.pid}`}),
        find: pid === null && detail.processes.length > 8 ? (process) => `${process.pid} ${process.comm} ${user(process)} ${process.cgroup}` : null,
    });
    const left = detail.all_processes - detail.processes.length;
    return el("section", {"aria-labelledby": "processes"},
              el("h2", {id: "processes"}, pid === null ? `Processes (${detail.all_processes})` : `Process ${pid}`),
              detail.processes.length === 0 && pid !== null ? elsewhere(model, detail.name, pid) : rows,
              pid === null && left > 0 ? el("p", {class: "empty"}, `and ${left} more: `, command("rdmaquota", "show", detail.name)) : null,
              pid === null ? null : el("p", {}, link.tenant(detail.name), ` has ${detail.all_processes} processes.`),
              pid === null ? null : el("p", {}, "Why was something denied to it: ", command("rdmaquota", "explain", "--pid", String(pid))));
}

export function tenantPage(model, name, pid, detail) {
    const tenant = model.byName.get(name);
    if (!tenant) {
        return [el("h2", {}, "Tenant ", named(name)), el("p", {class: "empty"}, "There is no such tenant, or you may not see it.")];
    }
    const shown = series(model, name);
    const here = alerts(model).filter((one) => one.tenant === name);
    const about = tenant.bare ? ["the sum of those below it; it has no table in the policy"] :
        [`mode ${tenant.mode}`, `weight ${tenant.weight}`, tenant.sum ? "the sum of those below it" : `${tenant.processes} processes`];
    return [
        el("section", {}, el("h2", {}, "Tenant ", named(name)), el("p", {}, about.join(", ")),
           here.length === 0 ? null : alertList(model, here)),
        el("section", {"aria-labelledby": "use"}, el("h2", {id: "use"}, "What it uses"), cells(model, tenant, shown)),
        rates(model, tenant),
        shown === null ? null : el("section", {"aria-labelledby": "trend"},
            el("h2", {id: "trend"}, "Trend of ", shown.resource, " on ", named(shown.device)),
            el("div", {"data-own": true, "data-key": "trend"})),
        detail && !tenant.sum ? processes(model, detail, pid) : null,
        el("section", {"aria-labelledby": "denials"}, el("h2", {id: "denials"}, "Its events"),
           eventList(model, model.events.filter((event) => event.tenant === name).slice(0, 20),
                     {id: "events", caption: "Its events", empty: "None lately."})),
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
    if (history === null) {
        place.replaceChildren(el("p", {class: "empty"}, "There is no history of it: nobody has used it lately, or the sidecar keeps that of 2,048 others already."));
        return;
    }
    if (trend.element.parentNode !== place) {
        place.replaceChildren(trend.element);
    }
    trend.update({title: `${shown.resource} of ${clean(name)} on ${clean(shown.device)}`, series: history, limit: shown.cell.limit,
                  unit: model.unit(shown.cell.resource), time: model.time, peaks: !model.byName.get(name).sum});
}
