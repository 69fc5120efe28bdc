/* A libibverbs of another name, as far as version nodes and texts tell. */
void verbs_set_ops(void *context, const void *ops);
void verbs_register_driver(const void *driver);
const char *const *verbs_texts(void);

void verbs_set_ops(void *context, const void *ops)
{
	(void)context;
	(void)ops;
}

void verbs_register_driver(const void *driver) { (void)driver; }

const char *const *verbs_texts(void)
{
	static const char *const texts[] = { "/opt/made-up/etc/libibverbs.d", "/opt/made-up/lib64/libibverbs/lib%s-rdmav57.so", "lib%s-rdmav57.so" };

	return texts;
}
