// The state as the sidecar sends it (web_state.hpp), and questions to it.
const fields = ["device", "resource", "used", "limit", "configured", "guarantee", "soft", "grace", "peak", "debt", "reason"];

function cell_of(row) {
    return Object.fromEntries(fields.map((name, i) => [name, row[i]]));
}

// Above which part of a limit a tenant is near it.
export const near = 0.9;

export class Model {
    constructor(state) {
        Object.assign(this, state);
        this.resources = state.resources.map(([name, unit, words]) => ({name, unit, words}));
        this.byName = new Map(state.tenants.map((tenant) => [tenant.name, tenant]));
        for (const tenant of state.tenants) {
            tenant.cells = tenant.cells.map(cell_of);
            tenant.at = new Map(tenant.cells.map((cell) => [this.key(cell.device, cell.resource), cell]));
        }
        this.leaves = state.tenants.filter((tenant) => !tenant.sum);
        this.top = state.top.map(([device, resource, tenant, pid, comm, used, uid]) =>
            ({device, resource, tenant: state.tenants[tenant], pid, comm, used, uid}));
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

    // Devices by name, without the sum over them.
    get deviceNumbers() {
        return this.devices.map((name, i) => i).filter((i) => this.devices[i] !== "total")
            .sort((a, b) => this.devices[a].localeCompare(this.devices[b], "en", {numeric: true}));
    }

    // Of one device and resource: what all use together, the node's limit, and the tenants by what they use.
    use(device, resource) {
        const shares = [];
        let used = 0;
        for (const tenant of this.leaves) {
            const cell = this.cell(tenant, device, resource);
            if (cell && cell.used > 0) {
                used += cell.used;
                shares.push({tenant, cell});
            }
        }
        shares.sort((a, b) => b.cell.used - a.cell.used);
        const node = this.byName.get("node");
        const whole = node && this.cell(node, device, resource);
        return {device, resource, used, shares, limit: whole ? whole.limit : null, peak: whole ? whole.peak : null};
    }

    // What anyone uses or may not exceed on a device.
    uses(device) {
        return this.resources.map((_, resource) => this.use(device, resource))
            .filter((use) => use.used > 0 || use.limit !== null);
    }

    // How near to its end anything of it is: 1 at a limit.
    static pressure(use) {
        const own = Math.max(0, ...use.shares.filter(({cell}) => cell.limit).map(({cell}) => cell.used / cell.limit));
        return use.limit ? Math.max(use.used / use.limit, own) : own;
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
