// SPDX-License-Identifier: GPL-2.0
/* Registers mlx5_0. What it simulates stands in mlx5sim.h. */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <net/addrconf.h>

#include "mlx5sim.h"

static char *netdev = "dummy0";
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "the network device behind the port; its addresses are the GIDs");

static const struct ib_device_ops sim_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_MLX5,
	.uverbs_abi_ver = MLX5_IB_UVERBS_ABI_VERSION,
	INIT_RDMA_OBJ_SIZE(ib_ucontext, sim_context, ib),
};

static const struct uapi_definition sim_defs[] = {
	UAPI_DEF_CHAIN(sim_device_defs),
	UAPI_DEF_CHAIN(sim_memory_defs),
	UAPI_DEF_CHAIN(sim_devx_defs),
	{},
};

static struct ib_device *device;

static int register_device(struct net_device *port)
{
	int error;

	device = _ib_alloc_device(sizeof(*device));
	if (!device)
		return -ENOMEM;
	device->node_type = RDMA_NODE_IB_CA;
	device->phys_port_cnt = 1;
	device->num_comp_vectors = 1;
	device->driver_def = sim_defs;
	addrconf_addr_eui48((u8 *)&device->node_guid, port->dev_addr);
	strscpy(device->node_desc, "mlx5sim", sizeof(device->node_desc));
	ib_set_device_ops(device, &sim_ops);
	ib_set_device_ops(device, &sim_device_ops);
	ib_set_device_ops(device, &sim_memory_ops);
	ib_set_device_ops(device, &sim_queue_ops);
	ib_set_device_ops(device, &sim_steering_ops);

	error = ib_device_set_netdev(device, port, 1);
	/* No device does the DMA, so addresses are virtual ones. */
	if (!error)
		error = ib_register_device(device, "mlx5_%d", NULL);
	if (error)
		ib_dealloc_device(device);
	return error;
}

static int __init sim_init(void)
{
	struct net_device *port = dev_get_by_name(&init_net, netdev);
	int error;

	if (!port) {
		pr_err("mlx5sim: no network device %s\n", netdev);
		return -ENODEV;
	}
	error = register_device(port);
	dev_put(port);
	if (!error)
		sim_knobs_create();
	return error;
}

static void __exit sim_exit(void)
{
	sim_knobs_remove();
	ib_unregister_device(device);
	ib_dealloc_device(device);
}

module_init(sim_init);
module_exit(sim_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("an mlx5 RDMA device without an adapter, for tests");
