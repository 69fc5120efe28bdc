/* A plugin that is linked to libmlx5, as UCX's transports are; its host need not be. */
#include <infiniband/mlx5dv.h>

int plugin_supports(struct ibv_device *device);

int plugin_supports(struct ibv_device *device)
{
	return mlx5dv_is_supported(device);
}
