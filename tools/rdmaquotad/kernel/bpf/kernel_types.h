// The few kernel types that the program reads, each with only the members that it reads. libbpf looks up their offsets
// in the running kernel and its modules when it loads the program (CO-RE).
#pragma once

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
    int counter;
} atomic_t;

typedef struct {
    __u32 val;
} kuid_t;

typedef struct {
    __u32 val;
} kgid_t;

struct group_info {
    int ngroups;
    kgid_t gid[];
};

struct cred {
    kuid_t euid;
    kgid_t egid;
    struct group_info *group_info;
};

struct kernfs_node {
    __u64 id;
};

struct cgroup {
    struct kernfs_node *kn;
};

struct css_set {
    struct cgroup *dfl_cgrp;
};

struct list_head {
    struct list_head *next;
};

struct module {
    char name[56];
};

struct file_operations {
    struct module *owner;
    void *write;
};

struct file {
    void *private_data;
    const struct file_operations *f_op;
};

struct signal_struct {
    atomic_t live;  // threads that have not begun to exit
};

struct task_struct {
    int exit_state;
    int pid;
    int tgid;
    __u64 start_boottime;
    struct signal_struct *signal;
    struct task_struct *group_leader;
    const struct cred *cred;
    struct css_set *cgroups;
};

struct bpf_iter_meta {
    void *seq;
    __u64 session_id;
    __u64 seq_num;
};

struct bpf_iter__task_file {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
    __u32 fd;
    struct file *file;
};

struct ib_device_ops {
    enum rdma_driver_id driver_id;
};

struct ib_device {
    struct ib_device_ops ops;
};

struct ib_rdmacg_object {
    void *cg;
};

struct ib_ucontext {
    struct ib_device *device;
    struct ib_uverbs_file *ufile;
    struct ib_rdmacg_object cg_obj;
};

struct ib_uverbs_device {
    struct ib_device *ib_dev;
    int devnum;
};

struct ib_uverbs_file {
    struct ib_uverbs_device *device;
    struct ib_ucontext *ucontext;
    struct list_head uobjects;
};

struct uverbs_api_object {
    __u32 id;
};

struct ib_uobject {
    struct ib_uverbs_file *ufile;
    struct ib_ucontext *context;
    void *object;
    struct list_head list;
    struct ib_rdmacg_object cg_obj;
    const struct uverbs_api_object *uapi_object;
};

struct uverbs_attr_bundle {
    struct ib_uverbs_file *ufile;
    struct ib_ucontext *context;
};

enum ib_mr_type {
    IB_MR_TYPE_DM = 2,
};

struct ib_mr {
    struct ib_device *device;
    __u64 length;
    enum ib_mr_type type;
};

struct ib_umem {
    __u32 is_odp : 1;
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
