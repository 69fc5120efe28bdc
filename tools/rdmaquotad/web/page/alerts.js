// What needs somebody: the worst first, each with who it is and what to type.
import {above, advice, makeRoom, moreForNode, moreForTenant, set} from "./advice.js";
import {el} from "./dom.js";
import {amount, clean, clock, command, duration, named, percent, reasons} from "./format.js";
import {link} from "./links.js";
import {isDenial, Model, near} from "./model.js";

const recently = 10 * 60;  // seconds

// Those who use most of it, as words: "physics 60 (60 %), astro 30 (30 %)", each after the colour that it has in the bar.
export function users(model, use, {most = 3, dots = false} = {}) {
    const unit = model.unit(use.resource);
    return use.shares.slice(0, most).flatMap(({tenant, cell}, i) =>
        [i === 0 ? "" : dots ? " " : ", ", el("span", {class: dots ? "user" : null}, dots ? el("i", {class: `dot dot-${i}`}) : null,
            link.tenant(tenant.name), ` ${amount(cell.used, unit)}`, use.own ? "" : ` (${percent(cell.used, use.used)})`)]);
}

function processesOf(model, use, tenant) {
    const uses = model.processes(use.device, use.resource, tenant).slice(0, 3);
    return uses.length === 0 ? [] : [" The largest processes of ", named(tenant.name), ": ", ...uses.flatMap((one, i) =>
        [i === 0 ? "" : ", ", link.process({...one, tenant: tenant.name}),
         ` with ${amount(one.used, model.unit(one.resource))}`]), "."];
}

// How many were denied lately, in words; null: none.
function deniedLately(model, use, tenant = null) {
    const denials = model.events.filter((event) => isDenial(event) && event.kind !== "would_deny" &&
        event.device === model.devices[use.device] && event.resource === model.resources[use.resource].name &&
        (tenant === null || event.tenant === tenant) && model.time - Date.parse(event.time) < recently * 1000);
    if (denials.length === 0) {
        return null;
    }
    const count = denials.reduce((sum, event) => sum + (event.count ?? 1), 0);
    const first = Math.min(...denials.map((event) => Date.parse(event.first_time ?? event.time)));
    return `${amount(count, "count")} ${count === 1 ? "was" : "were"} denied since ${clock(first)}.`;
}

// An alert: level ("bad", "warn" or "info"), weight (the heaviest first), tenant or null, device, key, title, body, advice;
// cause: the device and resource.
function alert(model, kind, use, tenant, weight, parts) {
    const device = model.devices[use.device];
    const {name} = model.resources[use.resource];
    return {kind, weight, tenant, device, cause: `${device}\n${name}`, key: [kind, tenant, device, name].join("\n"), body: [],
            advice: [], ...parts};
}

function ofNode(model, use) {
    const resource = model.resources[use.resource];
    const {unit} = resource;
    const [first] = use.shares;
    const full = use.used >= use.bound;
    const denied = deniedLately(model, use);
    return alert(model, "node", use, null, use.used / use.bound + 1, {
        level: full ? "bad" : "warn",
        title: [link.device(model.devices[use.device]), ` is ${full ? "full" : "nearly full"}: ${amount(use.used, unit)} of `,
                `${amount(use.bound, unit)} ${resource.name} (${resource.words}) in use.`,
                full ? ` Every program that wants another fails now${denied ? `; ${denied}` : "."}` : ""],
        body: first ? ["Most of it: ", ...users(model, use), ".", ...processesOf(model, use, first.tenant)] : [],
        advice: [moreForNode(model, use), makeRoom(model, use)],
    });
}

function ofTenant(model, use, {tenant, cell}) {
    const resource = model.resources[use.resource];
    const {unit} = resource;
    const granted = cell.reason === null || cell.reason === "grant";
    const bound = granted ? cell.configured : cell.limit;
    const why = granted ? "" : ` (${reasons[cell.reason] ?? clean(cell.reason)}; configured: ${amount(cell.configured, unit)})`;
    const full = cell.used >= bound;
    const denied = full ? deniedLately(model, use, tenant.name) : null;
    return alert(model, "tenant", use, tenant.name, Model.fill(cell), {
        level: full ? "bad" : "warn",
        title: ["Tenant ", link.tenant(tenant.name), ` has used ${amount(cell.used, unit)} of its ${amount(bound, unit)} `,
                `${resource.name} on `, link.device(model.devices[use.device]), why, full ? ", and gets no more" : "",
                denied ? `; ${denied}` : "."],
        body: tenant.sum ? [] : processesOf(model, use, tenant),
        advice: [granted && moreForTenant(model, use, tenant, bound)],
        short: [link.tenant(tenant.name), ` ${amount(cell.used, unit)} of ${amount(bound, unit)}`],
    });
}

function softOf(model, use, {tenant, cell}) {
    const resource = model.resources[use.resource];
    const {name, unit} = resource;
    const device = model.devices[use.device];
    const left = cell.grace > 0 ? `; in ${duration(cell.grace)} that becomes its limit.` : "; that is its limit now.";
    return alert(model, "soft", use, tenant.name, cell.grace > 0 ? 0.85 : 0.95, {
        level: "warn",
        title: ["Tenant ", link.tenant(tenant.name), ` is above its soft limit of ${amount(cell.soft, unit)} ${name} on `,
                link.device(device), `: it uses ${amount(cell.used, unit)}${left}`],
        advice: [advice(model, "Nothing to do if it will use less; to allow this much for good",
                        set(tenant.name, device, resource, cell.used, "--soft"))],
    });
}

function debtOf(model, use, {tenant, cell}) {
    const {name, unit} = model.resources[use.resource];
    return alert(model, "debt", use, tenant.name, 0.1, {
        level: "info",
        title: ["Tenant ", link.tenant(tenant.name), ` uses ${amount(cell.debt, unit)} ${name} more than its share on `,
                link.device(model.devices[use.device]), "."],
        body: ["Nothing to do: what it frees goes to others who wait for it."],
        short: [link.tenant(tenant.name), ` is ${amount(cell.debt, unit)} above its share`],
    });
}

function bypassOf(model, bypass) {
    return {
        kind: "bypass", level: "bad", weight: 3, tenant: bypass.tenant, device: bypass.device, key: `bypass ${bypass.pid} ${bypass.device}`,
        title: ["Process ", link.process(bypass), " of tenant ", link.tenant(bypass.tenant), " goes around the quota on ",
                link.device(bypass.device), "."],
        body: [model.bypassWords(bypass)],
        advice: model.node.guard.state === "off" && model.all ?
            [el("p", {class: "advice"}, "To have the kernel refuse that, write ", el("code", {}, "guard = \"deny\""),
                " below ", el("code", {}, "[sidecar]"), " in the policy file, then: ", command("rdmaquota", "reload"))] : [],
    };
}

function ofShare(model, use, share) {
    const {cell} = share;
    return [cell.debt > 0 && debtOf(model, use, share), Model.fill(cell) >= near && ofTenant(model, use, share),
            cell.grace !== null && softOf(model, use, share)].filter(Boolean);
}

function ofUse(model, use) {
    const list = use.bound && !use.own && use.used >= near * use.bound ? [ofNode(model, use)] : [];
    for (const tenant of model.inner) {
        const cell = model.cell(tenant, use.device, use.resource);
        if (cell && cell.used > 0 && Model.fill(cell) >= near) {
            list.push(ofTenant(model, use, {tenant, cell}));
        }
    }
    return list.concat(use.shares.flatMap((share) => ofShare(model, use, share)));
}

export function alerts(model) {
    const list = model.bypasses.map((bypass) => bypassOf(model, bypass));
    for (const device of model.devices.keys()) {
        if (model.hasDevice(model.devices[device])) {
            list.push(...model.uses(device).flatMap((use) => ofUse(model, use)));
        }
    }
    if (model.node.missing) {
        list.push({kind: "missing", level: "bad", weight: 9, key: "missing", title: [clean(model.node.missing)], body: [], advice: []});
    }
    const order = {bad: 2, warn: 1, info: 0};
    return list.sort((a, b) => order[b.level] - order[a.level] || b.weight - a.weight);
}

// One cause, one alert: what is said of the node, else of the topmost tenant, takes in what is said of those below it.
export function folded(model, all) {
    const inside = new Map();
    for (const one of all.filter(({short}) => short)) {
        const same = all.filter((other) => other !== one && other.cause === one.cause);
        const of = (name) => same.find((other) => other.kind === "tenant" && other.tenant === name);
        const parent = same.find(({kind}) => kind === "node") ??
            [...above(model, model.byName.get(one.tenant)).reverse(), {name: one.tenant}].map(({name}) => of(name)).find(Boolean);
        if (parent) {
            inside.set(parent, [...inside.get(parent) ?? [], one]);
        }
    }
    const taken = new Set([...inside.values()].flat());
    return all.filter((one) => !taken.has(one)).map((one) => ({...one, inside: inside.get(one) ?? []}));
}

const most = 8;

// That nobody goes around the quota, as far as the kernel's counts are known; null where somebody does.
export function aroundWords(model) {
    const who = model.all ? "Nobody" : "None of your programs";
    const why = el("a", {href: "#/node"}, "What the sidecar does not see");
    return model.bypasses.length > 0 ? null : el("p", {class: "empty"}, {
        all: `${who} goes around the quota.`,
        some: [`${who} is seen to go around the quota. `, why, "."],
        none: ["Whether anybody goes around the quota is not known: the kernel's objects cannot be counted. ", why, "."],
    }[model.watched]);
}

export function alertList(model, all) {
    if (all.length === 0) {
        return [el("p", {class: "empty"}, "Nothing is near a limit."), aroundWords(model)];
    }
    const items = all.slice(0, most).map(({key, level, title, body, advice: what, inside = []}) =>
        el("li", {"data-key": key, class: level}, el("p", {class: "what"}, title),
           body.length === 0 ? null : el("p", {}, body),
           inside.length === 0 ? null : el("p", {}, "Within that: ", inside.slice(0, 4).flatMap(({short}, i) => [i === 0 ? "" : ", ", ...short]),
                                           inside.length > 4 ? ` and ${inside.length - 4} more.` : "."),
           what.filter(Boolean)));
    return [el("ul", {class: "alerts"}, items),
            aroundWords(model),
            el("p", {class: "empty"}, "What ", el("code", {}, "rdmaquota set"), " changes holds from the next creation until the policy " +
               "file is loaded again or the node boots; ", el("code", {}, "unset"), " takes it back, ",
               el("code", {}, "--persist"), " keeps it."),
            all.length > most ? el("p", {class: "empty"}, `and ${all.length - most} more, in the tables of tenants and devices`) : null];
}
