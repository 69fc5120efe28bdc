/* Linked to the library and bound when it is loaded; a pointer in its data is, too. */
int answer(void);
int user_answer(void);
int (*const user_pointer)(void) = answer;
int user_answer(void) { return answer(); }
