// Denials and what the sidecar did or found.
import {el} from "./dom.js";
import {ago, amount, clean, clock, command, reasons, span} from "./format.js";
import {link} from "./links.js";
import {table} from "./table.js";

const kinds = {
    denied: "denied", delayed: "delayed", would_deny: "would be denied (audit)", unproved: "denied, not proved",
    refused_by_device: "refused by the device", refused: "refused by the guard", exceeded: "beyond a limit",
    killed: "killed by the guard", backstop_denied: "refused by the rdma cgroup",
};

function whoseIs({scope}) {
    return String(scope).startsWith("process") ? "the process" : "the tenant";
}

function words(model, event) {
    if (event.source === "sidecar") {
        return clean(event.text);
    }
    const rate = model.rates.find(({name}) => name === event.resource);
    if (rate) {
        return `${event.resource}: ${whoseIs(event)} may have ${amount(event.limit, rate.unit)} a second` +
            (event.kind === "delayed" ? `; calls were delayed by ${span(event.used / 1e6)} in all` :
                `, and would have waited longer than max_delay for ${amount(event.requested, rate.unit)}`);
    }
    const resource = model.resource(event.resource);
    if (resource < 0) {
        return "";
    }
    const unit = model.unit(resource);
    if (event.kind === "refused_by_device") {
        return `${event.resource}: ${amount(event.requested, unit)} asked for (${clean(event.error)})`;
    }
    const why = event.reason === null ? "" : ` (${reasons[event.reason] ?? clean(event.reason)})`;
    return `${event.resource}: ${whoseIs(event)} uses ${amount(event.used, unit)} of ${amount(event.limit, unit)}${why}, ` +
        `${amount(event.requested, unit)} more asked`;
}

// The device itself is full of it: then no limit helps.
function isFull(model, event) {
    const device = model.device(event.device);
    const resource = model.resource(event.resource);
    const use = model.all && device >= 0 && resource >= 0 ? model.use(device, resource) : {bound: null};
    return use.bound !== null && use.used >= use.bound;
}

// Commands in the remedy are shown as such if they can be copied safely.
function help(model, event) {
    if (isFull(model, event)) {
        return [link.device(event.device), ` is full of ${event.resource}; see there what helps`];
    }
    const parts = clean(event.helps || "").split(/(rdmaquota (?:(?!, or ).)+)/);
    const shown = parts.map((part, i) => (i % 2 === 1 && command(...part.split(" "))) || part);
    return model.all ? shown : ["For an administrator: ", ...shown];
}

const ofNode = 0xEFFFFFFC;  // the node's pid namespace, as the kernel numbers it

function whoOf(event) {
    const tenant = event.tenant ? link.tenant(event.tenant) : null;
    const contained = (event.pid_namespace ?? ofNode) !== ofNode;
    const process = event.pid ? link.process({...event, pid: contained ? null : event.pid, inner: event.pid}) : null;
    return [process, process && tenant ? ", " : "", tenant];
}

const columns = (model) => [
    {title: "When", value: ({time}) => -Date.parse(time),
     cell: ({time}) => el("time", {datetime: time, title: clock(time)}, ago(time, model.time))},
    {title: "What", value: ({kind}) => kind, cell: ({kind, count}) => (kinds[kind] || clean(kind)) + (count > 1 ? ` ×${count}` : "")},
    {title: "Who", value: ({tenant}) => tenant, cell: whoOf},
    {title: "Device", value: ({device}) => device, cell: ({device}) => (device ? link.device(device) : "–")},
    {title: "Why, and what helps", wide: true, cell: (event) => [el("span", {}, words(model, event)),
                                                                 event.helps ? el("p", {class: "advice"}, help(model, event)) : null]},
];

// More of table(): id, caption, empty, find.
export function eventList(model, items, more) {
    return table({columns: columns(model), items, row: ({source, tenant, number, kind}) => ({key: `${source || tenant} ${number} ${kind}`}), ...more});
}

export function eventsPage(model) {
    const find = (event) => [event.kind, kinds[event.kind], event.tenant, event.device, event.comm, event.user, words(model, event)].join(" ");
    return el("section", {"aria-labelledby": "events"}, el("h2", {id: "events"}, "Events"),
              el("p", {}, "The newest first; all of them: ", command("rdmaquota", "events")),
              eventList(model, model.events, {id: "events", caption: "Events", find, empty: "Nothing has happened yet."}));
}
