/** The quick ones; `npm run chaos` has them all. */
import { describeMisbehaving } from '../chaos/misbehaving.ts';

describeMisbehaving([['throws', /crashed until .*mischief: it will not start/]], ['exits']);
