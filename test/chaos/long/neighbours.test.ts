import { ages, villains } from '../../harness/villains.ts';
import { testNeighbours } from '../neighbours.ts';

testNeighbours(villains, ages);
