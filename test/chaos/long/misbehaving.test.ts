/** Every way in which a scheduler misbehaves. */
import { describeMisbehaving } from '../misbehaving.ts';

describeMisbehaving(
  [
    ['throws', /crashed until .*mischief: it will not start/],
    ['never-starts', /crashed until/],
    ['stuck', /crashed until .*mischief: it is stuck/],
    ['hangs', /crashed until/],
  ],
  ['blocks', 'exits', 'leaks'],
);
