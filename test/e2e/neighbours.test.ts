/** The quick villains; `npm run chaos` has them all. */
import { describeNeighbours } from '../chaos/neighbours.ts';

describeNeighbours(['spins', 'exits']);
