// Links to tenants, devices and processes, and the address of what is shown: "#/tenant/physics?sort-use=-peak" is a page, its words,
// and what a person chose there.
import {el} from "./dom.js";
import {named} from "./format.js";

function parts() {
    const [path, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
    return {path, query: new URLSearchParams(query)};
}

export function route() {
    try {
        return parts().path.split("/").map(decodeURIComponent);
    } catch {
        return [""];
    }
}

export function choice(name, fallback = "") {
    return parts().query.get(name) ?? fallback;
}

// Empty: as if nothing had been chosen. The window gets the event "choice".
export function choose(name, value) {
    const {path, query} = parts();
    value === "" ? query.delete(name) : query.set(name, value);
    history.replaceState(null, "", `#/${path}${query.size === 0 ? "" : `?${query}`}`);
    window.dispatchEvent(new Event("choice"));
}

const address = (...words) => `#/${words.map(encodeURIComponent).join("/")}`;

export const link = {
    tenant: (name) => el("a", {href: address("tenant", name)}, named(name)),
    device: (name) => el("a", {href: address("device", name)}, named(name)),
    pid: (tenant, pid, words) => el("a", {href: address("tenant", tenant, "pid", pid)}, words),
    // {tenant, comm, user, pid (null: the node's is not known), inner: the pid in its container}, as "gpt_train (pid 4711, alice)".
    // A pid that only a container knows leads nowhere here.
    process: ({tenant, comm, user, pid, inner}) => {
        const known = pid ? `pid ${pid}` : `pid ${inner} of a container`;
        const words = named(`${comm || "?"} (${[known, user].filter(Boolean).join(", ")})`);
        return pid && tenant ? link.pid(tenant, pid, words) : words;
    },
};
