/** The runtime `none`: nothing to execute, succeeds at once. Workers report such runs without even asking it. */
import { type Runtime, success } from './contract.ts';

export const none: Runtime = { name: 'none', run: async () => success };
