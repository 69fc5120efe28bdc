// What needs somebody: the worst first, each with who it is and what to type.
import {el} from "./dom.js";
import {amount, clean, command, duration, named, percent, reasons, setting} from "./format.js";
import {Model, near} from "./model.js";

export const link = {
    tenant: (name) => el("a", {href: `#/tenant/${encodeURIComponent(name)}`}, named(name)),
    device: (name) => el("a", {href: `#/device/${encodeURIComponent(name)}`}, named(name)),
    process: (tenant, pid, words) =>
        el("a", {href: `#/tenant/${encodeURIComponent(tenant)}/pid/${pid}`}, named(words)),
};

// "To allow more: COMMAND", for root; others are told whom to ask.
function advice(model, purpose, shown) {
    return shown && el("p", {class: "advice"}, model.all ? `${purpose}: ` : `${purpose}, ask an administrator for: `, shown);
}

function set(tenant, device, resource, value) {
    return command("rdmaquota", "set", tenant, device, `${resource.name}=${setting(value, resource.unit)}`);
}

// Those who use most of it, as words: "physics 60 (60 %), astro 30 (30 %)".
export function users(model, use, most = 3) {
    const unit = model.unit(use.resource);
    return use.shares.slice(0, most).flatMap(({tenant, cell}, i) =>
        [i === 0 ? "" : ", ", link.tenant(tenant.name), ` ${amount(cell.used, unit)} (${percent(cell.used, use.used)})`]);
}

function processesOf(model, use, tenant) {
    const uses = model.processes(use.device, use.resource, tenant).slice(0, 3);
    return uses.length === 0 ? [] : [` The largest processes of ${clean(tenant.name)}: `, ...uses.flatMap((one, i) =>
        [i === 0 ? "" : ", ", link.process(tenant.name, one.pid, `${one.comm} (pid ${one.pid})`),
         ` with ${amount(one.used, model.unit(one.resource))}`]), "."];
}

// An alert: weight (1: full), tenant or null, device, key, title, body, advice.
function alert(model, kind, use, tenant, weight, parts) {
    const device = model.devices[use.device];
    const {name} = model.resources[use.resource];
    return {weight, tenant, device, key: [kind, tenant, device, name].join("\n"), body: [], advice: [], ...parts};
}

function ofNode(model, use) {
    const device = model.devices[use.device];
    const resource = model.resources[use.resource];
    const {unit} = resource;
    const [first] = use.shares;
    const limited = use.bound === use.limit;
    return alert(model, "node", use, null, use.used / use.bound + 1, {
        title: [link.device(device), ` is ${use.used >= use.bound ? "full" : "nearly full"}: ${amount(use.used, unit)} of `,
                `${amount(use.bound, unit)} ${resource.name} (${resource.words}) `, limited ? "in use." : "that it can have."],
        body: first ? ["Most of it: ", ...users(model, use), ".", ...processesOf(model, use, first.tenant)] : [],
        advice: [first && advice(model, `So that ${clean(first.tenant.name)} gets no more`,
                                 set(first.tenant.name, device, resource, first.cell.used)),
                 limited && advice(model, "To allow more on this node", set("node", device, resource, use.bound * 1.25))],
    });
}

function ofTenant(model, use, {tenant, cell}) {
    const device = model.devices[use.device];
    const resource = model.resources[use.resource];
    const {unit} = resource;
    const granted = cell.reason === null || cell.reason === "grant";
    const bound = granted ? cell.configured : cell.limit;
    const why = granted ? "" : ` (${reasons[cell.reason] ?? clean(cell.reason)}; configured: ${amount(cell.configured, unit)})`;
    return alert(model, "tenant", use, tenant.name, Model.fill(cell), {
        title: ["Tenant ", link.tenant(tenant.name), ` has used ${amount(cell.used, unit)} of its ${amount(bound, unit)} `,
                `${resource.name} on `, link.device(device), `${why}.`],
        body: tenant.sum ? [] : processesOf(model, use, tenant),
        advice: [granted && advice(model, "To allow more", set(tenant.name, device, resource, Math.max(bound * 1.25, bound + 1)))],
    });
}

function softOf(model, use, {tenant, cell}) {
    const {name, unit} = model.resources[use.resource];
    const left = cell.grace > 0 ? `; in ${duration(cell.grace)} that becomes its limit` : "; that is its limit now";
    return alert(model, "soft", use, tenant.name, 0.85, {
        title: ["Tenant ", link.tenant(tenant.name), ` is above its soft limit of ${amount(cell.soft, unit)} ${name} on `,
                link.device(model.devices[use.device]), `: ${amount(cell.used, unit)}${left}.`],
    });
}

function debtOf(model, use, {tenant, cell}) {
    const {name, unit} = model.resources[use.resource];
    return alert(model, "debt", use, tenant.name, 0.8, {
        title: ["Tenant ", link.tenant(tenant.name), ` uses ${amount(cell.debt, unit)} ${name} more than its share on `,
                link.device(model.devices[use.device]), "; what it frees goes to others who wait for it."],
    });
}

function bypassOf(model, bypass) {
    const parts = Object.entries(bypass.resources).map(([name, {kernel, ledger}]) => {
        const unit = model.unit(model.resource(name));
        return `${name} ${amount(kernel, unit)} in the kernel, ${amount(ledger, unit)} charged`;
    });
    return {
        weight: 3, tenant: bypass.tenant, device: bypass.device, key: `bypass ${bypass.pid} ${bypass.device}`,
        title: ["Process ", link.process(bypass.tenant, bypass.pid, `${bypass.comm || "?"} (pid ${bypass.pid})`), " of tenant ",
                link.tenant(bypass.tenant), " goes around the quota on ", named(bypass.device), "."],
        body: [parts.join("; ")],
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
    const list = use.bound && use.used >= near * use.bound ? [ofNode(model, use)] : [];
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
        list.push({weight: 9, key: "missing", title: [clean(model.node.missing)], body: [], advice: []});
    }
    return list.sort((a, b) => b.weight - a.weight);
}

const most = 8;

function isBad({weight, key}) {
    return key.startsWith("node\n") ? weight >= 2 : weight >= 1;
}

export function alertList(all) {
    if (all.length === 0) {
        return el("p", {class: "empty"}, "Nothing is near a limit, and nobody goes around the quota.");
    }
    const items = all.slice(0, most).map((one) =>
        el("li", {"data-key": one.key, class: isBad(one) ? "bad" : "warn"}, el("p", {class: "what"}, one.title),
           one.body.length === 0 ? null : el("p", {}, one.body), one.advice.filter(Boolean)));
    return [el("ul", {class: "alerts"}, items),
            all.length > most ? el("p", {class: "empty"}, `and ${all.length - most} more, in the tables of tenants and devices`) : null];
}
