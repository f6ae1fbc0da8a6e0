/** The quick villains; `npm run chaos` has them all. */
import { testNeighbours } from '../chaos/neighbours.ts';

testNeighbours(['spins', 'exits']);
