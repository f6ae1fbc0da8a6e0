/** Every kind of misbehaving scheduler. */
import { testMisbehaving } from '../misbehaving.ts';

testMisbehaving(
  [
    ['throws', /crashed: .*mischief: it will not start/],
    ['never-starts', /crashed:/],
    ['stuck', /failing: .*it is stuck/],
    ['hangs', /failing: /],
  ],
  ['blocks', 'exits', 'leaks'],
);
