/** The misbehaving schedulers that are quickly noticed; `npm run chaos` has all kinds. */
import { testMisbehaving } from '../chaos/misbehaving.ts';

testMisbehaving([['throws', /crashed: .*mischief: it will not start/]], ['exits']);
