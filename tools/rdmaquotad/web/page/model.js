// The state as the sidecar sends it (web_state.hpp), and questions to it.
import {amount} from "./format.js";

function cellOf([device, resource, used, limit, configured, guarantee, soft, grace, peak, debt, earmarked, reason]) {
    return {device, resource, used, limit, configured, guarantee: guarantee || null, soft, grace, peak, debt: debt || null,
            earmarked: earmarked || null, reason};
}

function parentOf(name) {
    return name.includes("/") ? name.slice(0, name.lastIndexOf("/")) : "node";
}

// Above which part of a limit a tenant is near it.
export const near = 0.9;

export function isDenial({kind}) {
    return ["denied", "would_deny", "unproved", "refused_by_device", "refused", "exceeded", "killed", "backstop_denied"].includes(kind);
}

export class Model {
    // hours: see hour().
    constructor(state, hours) {
        Object.assign(this, state, {hours});
        this.resources = state.resources.map(([name, unit, words]) => ({name, unit, words}));
        this.rates = state.rates.map(([name, unit, words]) => ({name, unit, words}));
        this.byName = new Map(state.tenants.map((tenant) => [tenant.name, tenant]));
        for (const tenant of state.tenants) {
            tenant.at = new Map(tenant.cells.map(cellOf).map((cell) => [this.key(cell.device, cell.resource), cell]));
        }
        this.leaves = state.tenants.filter((tenant) => !tenant.sum);
        if (this.all) {
            this.leaves.forEach((tenant) => this.addAbove(tenant));
        }
        for (const tenant of this.byName.values()) {
            tenant.cells = [...tenant.at.values()];
        }
        this.inner = [...this.byName.values()].filter((tenant) => tenant.sum && tenant.name !== "node");
        this.ofNode = new Set(state.node.devices);
        this.capacities = new Map(state.capacity.map(([device, resource, most]) =>
            [this.key(this.device(device), this.resource(resource)), most]));
        this.shares = this.sharesByPlace();
        this.top = state.top.map(([device, resource, tenant, pid, comm, used, user, inner]) =>
            ({device, resource, tenant: state.tenants[tenant], pid, comm, used, user, inner}));
    }

    // Adds what a tenant uses to those above it that have no table in the policy, and so no limits ("bare").
    addAbove({parent, at}) {
        for (let name = parent; name !== "node"; name = parentOf(name)) {
            const inner = this.byName.get(name) ?? {name, parent: parentOf(name), sum: true, bare: true, at: new Map()};
            this.byName.set(name, inner);
            for (const [key, {device, resource, used}] of inner.bare ? at : []) {
                const cell = inner.at.get(key) ?? cellOf([device, resource, 0, null, null, 0, null, null, null, 0, 0, null]);
                inner.at.set(key, {...cell, used: cell.used + used});
            }
        }
    }

    // By device and resource: the tenants that use it, those first that use most.
    sharesByPlace() {
        const places = new Map();
        for (const tenant of this.leaves) {
            for (const cell of tenant.cells) {
                if (cell.used > 0) {
                    const key = this.key(cell.device, cell.resource);
                    places.has(key) ? places.get(key).push({tenant, cell}) : places.set(key, [{tenant, cell}]);
                }
            }
        }
        places.forEach((shares) => shares.sort((a, b) => b.cell.used - a.cell.used));
        return places;
    }

    key(device, resource) {
        return device * 64 + resource;
    }

    cell(tenant, device, resource) {
        return tenant.at.get(this.key(device, resource));
    }

    device(name) {
        return this.devices.indexOf(name);
    }

    resource(name) {
        return this.resources.findIndex((resource) => resource.name === name);
    }

    unit(resource) {
        return this.resources[resource].unit;
    }

    // Whether the node has this device, or the port of it. Anyone may have entered others in a ledger. Without any RDMA device,
    // all that are named count.
    hasDevice(name) {
        return this.ofNode.size === 0 || name === "total" || this.ofNode.has(name.replace(/\/[0-9]+$/, ""));
    }

    // Devices by name, without the sum over them.
    get deviceNumbers() {
        return this.devices.map((name, i) => i).filter((i) => this.devices[i] !== "total")
            .sort((a, b) => this.devices[a].localeCompare(this.devices[b], "en", {numeric: true}));
    }

    // Of one device and resource: what all use together, the node's limit, what the device can have (null: not known), which of
    // the two is met first, else what it is to be compared with (scale), and the tenants by what they use. Those who do not see all
    // tenants know none of that: see uses().
    use(device, resource) {
        const shares = this.shares.get(this.key(device, resource)) ?? [];
        const used = shares.reduce((sum, {cell}) => sum + cell.used, 0);
        const node = this.byName.get("node");
        const whole = node && this.cell(node, device, resource);
        const limit = whole ? whole.limit : null;
        const capacity = this.all ? this.capacities.get(this.key(device, resource)) ?? null : null;
        const bound = limit === null || capacity === null ? limit ?? capacity : Math.min(limit, capacity);
        const scale = bound ?? (this.resources[resource].name === "mr_bytes" ? this.node.memory : null);
        return {device, resource, used, shares, limit, capacity, bound, scale};
    }

    // What anyone uses or may not exceed on a device. For those who do not see all tenants, of each tenant apart, with its own
    // limit (`own`).
    uses(device) {
        if (!this.all) {
            return this.leaves.flatMap((tenant) => tenant.cells.filter((cell) => cell.device === device)
                .map((cell) => ({device, resource: cell.resource, used: cell.used, shares: [{tenant, cell}], limit: cell.limit,
                                 capacity: null, bound: cell.limit, scale: cell.limit, own: true})));
        }
        return this.resources.map((_, resource) => this.use(device, resource))
            .filter((use) => use.used > 0 || use.limit !== null);
    }

    // How near to its end anything of it is: 1 at a limit.
    static pressure(use) {
        const own = Math.max(0, ...use.shares.map(({cell}) => Model.fill(cell)));
        return use.bound ? Math.max(use.used / use.bound, own) : own;
    }

    // What a process has around the quota.
    bypassWords({resources}) {
        return Object.entries(resources).map(([name, {kernel, ledger}]) => {
            const unit = this.unit(this.resource(name));
            return `${name} ${amount(kernel, unit)} in the kernel, ${amount(ledger, unit)} charged`;
        }).join("; ");
    }

    // The limit that counts for "full": a share grows while others leave something, so it is none. Null: there is none.
    static bound({reason, configured, limit}) {
        return reason === "grant" ? configured : limit;
    }

    static fill(cell) {
        const bound = Model.bound(cell);
        return bound === null ? 0 : cell.used / Math.max(bound, 1);
    }

    // Who makes and destroys objects fastest: [{tenant (null: not known), device, resource, created, destroyed}], a second.
    get fastest() {
        return this.churn.map(([tenant, device, resource, created, destroyed]) => ({tenant, device, resource, created, destroyed}))
            .sort((a, b) => b.created + b.destroyed - a.created - a.destroyed);
    }

    processes(device, resource, tenant = null) {
        return this.top.filter((use) => use.device === device && use.resource === resource &&
            (tenant === null || use.tenant === tenant));
    }

    // What was in use in each of the last 60 minutes, as far as that is known.
    hour({device, resource, own, shares}) {
        return this.hours?.get([own ? shares[0].tenant.name : "node", this.devices[device], this.resources[resource].name].join("\n")) ?? [];
    }

    // Whether it can be told that nobody goes around the quota, which the kernel's counts show: "all", "some" kinds of objects, "none".
    get watched() {
        const {looks, not_seen: unseen} = this.node.kernel;
        return looks === 0 ? "none" : unseen.length === 0 ? "all" : "some";
    }

    // All tenants as a tree in order: [{tenant, depth}].
    get tree() {
        const below = new Map();
        for (const tenant of this.byName.values()) {
            const parent = this.byName.has(tenant.parent) ? tenant.parent : null;
            below.has(parent) ? below.get(parent).push(tenant) : below.set(parent, [tenant]);
        }
        const rows = [];
        const walk = (parent, depth) => {
            for (const tenant of (below.get(parent) ?? []).sort((a, b) => (a.name < b.name ? -1 : 1))) {
                rows.push({tenant, depth});
                walk(tenant.name, depth + 1);
            }
        };
        walk(null, 0);
        return rows;
    }
}
