/** The runtime `none`: it executes nothing and succeeds at once. Workers report most of its runs without calling it. */
import { mismatch, type Runtime, success } from '../contract.ts';
import type { RuntimeFactory } from '../factory.ts';

export const none: Runtime = {
  name: 'none',
  serves: ['none'],
  outlives: false,
  run: async ({ work }) => (work.kind === 'none' ? success : mismatch('none', work)),
};

export const noneFactory: RuntimeFactory = { serves: none.serves, make: () => none };
