/** Which tenants may run tasks on the machines of workers themselves: the setting. `runtimes/local-tasks.ts` applies it. */
export type LocalTasks = 'all' | 'default';
