import { describeNeighbours } from '../neighbours.ts';

describeNeighbours(['spins', 'blocks', 'blocks-later', 'exits', 'leaks']);
