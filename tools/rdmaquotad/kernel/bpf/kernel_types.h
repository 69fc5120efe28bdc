// The few kernel types that the program reads, each with only the members that it reads. libbpf looks up their offsets
// in the running kernel and its modules when it loads the program (CO-RE).
#pragma once

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
    int counter;
} atomic_t;

struct signal_struct {
    atomic_t live;  // threads that have not begun to exit
};

struct task_struct {
    int tgid;
    struct signal_struct *signal;
};

struct ib_device {
    char name[64];
    __u32 index;
};

struct ib_rdmacg_object {
    void *cg;
};

struct ib_ucontext {
    struct ib_device *device;
    struct ib_uverbs_file *ufile;
    struct ib_rdmacg_object cg_obj;
};

struct ib_uverbs_file {
    struct ib_ucontext *ucontext;
};

struct uverbs_api_object {
    __u32 id;
};

struct ib_uobject {
    struct ib_uverbs_file *ufile;
    struct ib_ucontext *context;
    void *object;
    struct ib_rdmacg_object cg_obj;
    const struct uverbs_api_object *uapi_object;
};

struct uverbs_attr_bundle {
    struct ib_uverbs_file *ufile;
    struct ib_ucontext *context;
};

struct ib_mr {
    __u64 length;
};

struct ib_dm {
    __u32 length;
};

enum rdmacg_resource_type {
    RDMACG_RESOURCE_HCA_HANDLE = 0,
};

enum rdma_remove_reason {
    RDMA_REMOVE_DESTROY,
};

#pragma clang attribute pop
