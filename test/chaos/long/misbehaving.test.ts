/** Every kind of misbehaving scheduler. */
import { testMisbehaving } from '../misbehaving.ts';

testMisbehaving(
  [
    ['throws', /crashed: .*mischief: it will not start/],
    ['never-starts', /crashed:/],
    ['stuck', /crashed: .*mischief: it is stuck/],
    ['hangs', /crashed:/],
  ],
  ['blocks', 'exits', 'leaks'],
);
