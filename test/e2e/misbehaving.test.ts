/** The quick ones; `npm run chaos` has them all. */
import { testMisbehaving } from '../chaos/misbehaving.ts';

testMisbehaving([['throws', /crashed: .*mischief: it will not start/]], ['exits']);
