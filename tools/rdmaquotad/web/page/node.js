// How far this node is covered: what the sidecar sees, the guard, who goes around, what `doctor` finds.
import {el, table} from "./dom.js";
import {amount, clean, command, named} from "./format.js";
import {link} from "./links.js";

const states = {
    off: "off: programs that go around the library are only reported", watch: "watches: it counts what exceeds a limit, and refuses nothing",
    deny: "on: the kernel refuses what exceeds a limit", starting: "on: the kernel refuses what exceeds a limit",
};

function guard(model) {
    const {guard: state} = model.node;
    const watches = state.state === "watch";
    const rows = model.refused.map(([tenant, device, resource, count]) => ({
        key: `${tenant} ${device} ${resource}`, cells: [link.tenant(tenant), named(device), resource, amount(count, "count")],
    }));
    return el("section", {"aria-labelledby": "guard"}, el("h2", {id: "guard"}, "The guard in the kernel"),
              el("p", {}, `It is ${states[state.state] ?? clean(state.state)}.`),
              state.state === "off" ? null :
                  table(watches ? "Creations that it would have refused" : "Creations that it refused",
                        [{title: "Tenant"}, {title: "Device"}, {title: "Resource"}, {title: watches ? "Would have refused" : "Refused", number: true}],
                        rows, watches ? "It would have refused nothing." : "It has refused nothing."));
}

function bypasses(model) {
    const rows = model.bypasses.map((bypass) => ({
        key: `${bypass.pid} ${bypass.device}`,
        cells: [link.process(bypass), link.tenant(bypass.tenant), link.device(bypass.device), clean(bypass.cgroup || "–"),
                model.bypassWords(bypass)],
    }));
    return el("section", {"aria-labelledby": "bypasses"}, el("h2", {id: "bypasses"}, "Who goes around the quota"),
              table("Processes that have more in the kernel than they are charged for",
                    [{title: "Process"}, {title: "Tenant"}, {title: "Device"}, {title: "Cgroup"}, {title: "What"}], rows, "Nobody."));
}

function coverage(model) {
    const {findings, kernel} = model.node;
    const rows = (findings ?? []).map(({level, subject, text}, i) => ({
        key: String(i), class: level === "problem" ? "bad" : level === "warning" ? "warn" : null,
        cells: [clean(subject), clean(level), clean(text)],
    }));
    return el("section", {"aria-labelledby": "coverage"}, el("h2", {id: "coverage"}, "Coverage of this node"),
              kernel.not_seen.length === 0 ? el("p", {}, "The sidecar sees all that the kernel makes.") :
                  [el("p", {}, "What the sidecar does not see:"), el("ul", {}, kernel.not_seen.map((line) => el("li", {}, clean(line))))],
              rows.length === 0 ? el("p", {}, "What else there is to know of this node: ", command("rdmaquota", "doctor")) :
                  table("What rdmaquota doctor finds", [{title: "Subject"}, {title: "Level"}, {title: "Finding"}], rows));
}

export function nodePage(model) {
    return [bypasses(model), guard(model), coverage(model)];
}
