// What needs somebody: the worst first, each with who it is and what to type.
import {el} from "./dom.js";
import {amount, clean, command, duration, named, percent, setting} from "./format.js";
import {near} from "./model.js";

export const link = {
    tenant: (name) => el("a", {href: `#/tenant/${encodeURIComponent(name)}`}, named(name)),
    device: (name) => el("a", {href: `#/device/${encodeURIComponent(name)}`}, named(name)),
    process: (tenant, pid, words) =>
        el("a", {href: `#/tenant/${encodeURIComponent(tenant)}/pid/${pid}`}, words || `pid ${pid}`),
};

// "To allow more: COMMAND", for root; others are told whom to ask.
export function advice(model, purpose, shown) {
    if (!shown) {
        return null;
    }
    return el("p", {class: "advice"}, model.all ? `${purpose}: ` : `${purpose}, ask an administrator for: `, shown);
}

function set(tenant, device, resource, value) {
    return command("rdmaquota", "set", tenant, device, `${resource.name}=${setting(value, resource.unit)}`);
}

// Those who use most of it, as words: "physics 60 %, astro 30 %".
export function users(use, most = 3) {
    return use.shares.slice(0, most).flatMap(({tenant, cell}, i) =>
        [i === 0 ? "" : ", ", link.tenant(tenant.name), ` ${percent(cell.used, use.used)}`]);
}

function processesOf(model, use, tenant) {
    const uses = model.processes(use.device, use.resource, tenant).slice(0, 3);
    return uses.length === 0 ? [] : [" Its largest processes: ", ...uses.flatMap((one, i) =>
        [i === 0 ? "" : ", ", link.process(tenant.name, one.pid, `${clean(one.comm)} (pid ${one.pid})`),
         ` with ${amount(one.used, model.unit(one.resource))}`]), "."];
}

function ofNode(model, use) {
    const device = model.devices[use.device];
    const resource = model.resources[use.resource];
    const {unit} = resource;
    const [first] = use.shares;
    return {
        weight: use.used / use.limit + 1, key: `node ${device} ${resource.name}`,
        title: [link.device(device), ` is ${use.used >= use.limit ? "full" : "nearly full"}: ${amount(use.used, unit)} of `,
                `${amount(use.limit, unit)} ${resource.name} in use.`],
        body: ["Most of it: ", ...users(use), ".", ...(first ? processesOf(model, use, first.tenant) : [])],
        advice: [first && advice(model, `So that ${clean(first.tenant.name)} gets no more`,
                                 set(first.tenant.name, device, resource, first.cell.used)),
                 advice(model, "To allow more on this node", set("node", device, resource, use.limit * 1.25))],
    };
}

function ofTenant(model, use, {tenant, cell}) {
    const device = model.devices[use.device];
    const resource = model.resources[use.resource];
    const {unit} = resource;
    const why = cell.reason === null ? "" : ` (its limit is ${clean(cell.reason)}; configured: ${amount(cell.configured, unit)})`;
    return {
        weight: cell.used / Math.max(cell.limit, 1), key: `tenant ${tenant.name} ${device} ${resource.name}`,
        title: ["Tenant ", link.tenant(tenant.name), ` has used ${amount(cell.used, unit)} of its ${amount(cell.limit, unit)} `,
                `${resource.name} on `, link.device(device), `${why}.`],
        body: processesOf(model, use, tenant),
        advice: [cell.reason === null && advice(model, "To allow more", set(tenant.name, device, resource, Math.max(cell.limit * 1.25, cell.limit + 1)))],
    };
}

function softOf(model, use, {tenant, cell}) {
    const {name, unit} = model.resources[use.resource];
    const left = cell.grace > 0 ? `; in ${duration(cell.grace)} that becomes its limit` : "; that is its limit now";
    return {
        weight: 0.85, key: `soft ${tenant.name} ${use.device} ${name}`,
        title: ["Tenant ", link.tenant(tenant.name), ` is above its soft limit of ${amount(cell.soft, unit)} ${name} on `,
                link.device(model.devices[use.device]), `: ${amount(cell.used, unit)}${left}.`],
        body: [], advice: [],
    };
}

function debtOf(model, use, {tenant, cell}) {
    const {name, unit} = model.resources[use.resource];
    return {
        weight: 0.8, key: `debt ${tenant.name} ${use.device} ${name}`,
        title: ["Tenant ", link.tenant(tenant.name), ` uses ${amount(cell.debt, unit)} ${name} more than its share on `,
                link.device(model.devices[use.device]), "; what it frees goes to others who wait for it."],
        body: [], advice: [],
    };
}

function bypassOf(model, bypass) {
    const parts = Object.entries(bypass.resources).map(([name, {kernel, ledger}]) => {
        const unit = model.unit(model.resource(name));
        return `${name} ${amount(kernel, unit)} in the kernel, ${amount(ledger, unit)} charged`;
    });
    return {
        weight: 3, key: `bypass ${bypass.pid} ${bypass.device}`,
        title: [`Process ${clean(bypass.comm || "?")} (pid ${bypass.pid}) of tenant `, named(bypass.tenant),
                " goes around the quota on ", named(bypass.device), "."],
        body: [parts.join("; ")],
        advice: model.node.guard.state === "off" && model.all ?
            [el("p", {class: "advice"}, "To have the kernel refuse that, write ", el("code", {}, "guard = \"deny\""),
                " below ", el("code", {}, "[sidecar]"), " in the policy file, then: ", command("rdmaquota", "reload"))] : [],
    };
}

export function alerts(model) {
    const list = model.bypasses.map((bypass) => bypassOf(model, bypass));
    for (const device of model.devices.keys()) {
        for (const use of model.uses(device)) {
            if (use.limit && use.used >= near * use.limit) {
                list.push(ofNode(model, use));
            }
            for (const share of use.shares) {
                const {cell} = share;
                if (cell.debt > 0) {
                    list.push(debtOf(model, use, share));
                } else if (cell.limit !== null && cell.used >= near * cell.limit) {
                    list.push(ofTenant(model, use, share));
                } else if (cell.grace !== null) {
                    list.push(softOf(model, use, share));
                }
            }
        }
    }
    if (model.node.missing) {
        list.push({weight: 9, key: "missing", title: [clean(model.node.missing)], body: [], advice: []});
    }
    return list.sort((a, b) => b.weight - a.weight);
}

const most = 8;

export function alertList(model, all = alerts(model)) {
    if (all.length === 0) {
        return el("p", {class: "empty"}, "Nothing is near a limit, and nobody goes around the quota.");
    }
    const items = all.slice(0, most).map(({key, title, body, advice: help, weight}) =>
        el("li", {"data-key": key, class: weight >= 1 ? "bad" : "warn"}, el("p", {class: "what"}, title),
           body.length === 0 ? null : el("p", {}, body), help.filter(Boolean)));
    return [el("ul", {class: "alerts"}, items),
            all.length > most ? el("p", {class: "empty"}, `and ${all.length - most} more, in the tables below`) : null];
}
