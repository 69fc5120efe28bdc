// The state as the sidecar sends it (web_state.hpp), and questions to it.
import {amount} from "./format.js";

function cellOf([device, resource, used, limit, configured, guarantee, soft, grace, peak, debt, earmarked, reason]) {
    return {device, resource, used, limit, configured, guarantee, soft, grace, peak, debt, earmarked, reason};
}

// Above which part of a limit a tenant is near it.
export const near = 0.9;

export function isDenial({kind}) {
    return ["denied", "would_deny", "unproved", "refused_by_device", "refused", "exceeded", "killed", "backstop_denied"].includes(kind);
}

export class Model {
    constructor(state) {
        Object.assign(this, state);
        this.resources = state.resources.map(([name, unit, words]) => ({name, unit, words}));
        this.byName = new Map(state.tenants.map((tenant) => [tenant.name, tenant]));
        for (const tenant of state.tenants) {
            tenant.cells = tenant.cells.map(cellOf);
            tenant.at = new Map(tenant.cells.map((cell) => [this.key(cell.device, cell.resource), cell]));
        }
        this.leaves = state.tenants.filter((tenant) => !tenant.sum);
        this.inner = state.tenants.filter((tenant) => tenant.sum && tenant.name !== "node");
        this.ofNode = new Set(state.node.devices);
        this.capacities = new Map(state.capacity.map(([device, resource, most]) =>
            [this.key(this.device(device), this.resource(resource)), most]));
        this.shares = this.sharesByPlace();
        this.top = state.top.map(([device, resource, tenant, pid, comm, used, user, inner]) =>
            ({device, resource, tenant: state.tenants[tenant], pid, comm, used, user, inner}));
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
    // the two is met first, and the tenants by what they use. Those who do not see all tenants know none of that: see uses().
    use(device, resource) {
        const shares = this.shares.get(this.key(device, resource)) ?? [];
        const used = shares.reduce((sum, {cell}) => sum + cell.used, 0);
        const node = this.byName.get("node");
        const whole = node && this.cell(node, device, resource);
        const limit = whole ? whole.limit : null;
        const capacity = this.all ? this.capacities.get(this.key(device, resource)) ?? null : null;
        const bound = limit === null || capacity === null ? limit ?? capacity : Math.min(limit, capacity);
        return {device, resource, used, shares, limit, capacity, bound};
    }

    // What anyone uses or may not exceed on a device. For those who do not see all tenants, of each tenant apart, with its own
    // limit (`own`).
    uses(device) {
        if (!this.all) {
            return this.leaves.flatMap((tenant) => tenant.cells.filter((cell) => cell.device === device)
                .map((cell) => ({device, resource: cell.resource, used: cell.used, shares: [{tenant, cell}], limit: cell.limit,
                                 capacity: null, bound: cell.limit, own: true})));
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

    // The part of its limit that a tenant uses; a share grows while others leave something, so it counts as no limit.
    static fill(cell) {
        const bound = cell.reason === "grant" ? cell.configured : cell.limit;
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

    // The tenants as a tree in order: [{tenant, depth}].
    get tree() {
        const below = new Map();
        for (const tenant of this.tenants) {
            const parent = tenant.parent !== null && !this.byName.has(tenant.parent) ? null : tenant.parent;
            below.has(parent) ? below.get(parent).push(tenant) : below.set(parent, [tenant]);
        }
        const rows = [];
        const walk = (parent, depth) => {
            for (const tenant of below.get(parent) || []) {
                rows.push({tenant, depth});
                if (tenant.name !== parent) {
                    walk(tenant.name, depth + 1);
                }
            }
        };
        walk(null, 0);
        return rows;
    }
}
