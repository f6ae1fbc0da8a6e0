/** The challenges of a 401 of the bus: Routemaster's clients use Basic, with the key as user name. */
export const busChallenges = 'Basic realm="millrace", Bearer realm="millrace"';
