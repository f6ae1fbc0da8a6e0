/** The quick villains beside tenants that have just been started; `npm run chaos` has them all. */
import { testNeighbours } from '../chaos/neighbours.ts';

testNeighbours(['spins', 'exits'], ['new']);
