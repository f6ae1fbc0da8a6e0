/** The name of the image that test engines have: busybox, and a user `task`. */
export const testImage = 'millrace-test:1';
