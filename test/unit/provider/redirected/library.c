/* A library whose functions redirect_test.cpp redirects; it calls one of them itself, bound at first use. */
int answer(void);
int twice(void);
int own_answer(void);

int answer(void) { return 1; }
int twice(void) { return 2; }
int own_answer(void) { return answer(); }
