/** Every way in which a scheduler misbehaves. */
import { describeMisbehaving } from '../misbehaving.ts';

describeMisbehaving(
  [
    ['throws', /crashed: .*mischief: it will not start/],
    ['never-starts', /crashed:/],
    ['stuck', /crashed: .*mischief: it is stuck/],
    ['hangs', /crashed:/],
  ],
  ['blocks', 'exits', 'leaks'],
);
