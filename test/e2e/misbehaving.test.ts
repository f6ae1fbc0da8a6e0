/** The quick ones; `npm run chaos` has them all. */
import { describeMisbehaving } from '../chaos/misbehaving.ts';

describeMisbehaving([['throws', /crashed: .*mischief: it will not start/]], ['exits']);
