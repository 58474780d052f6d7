package publish

// Settle is how long a change on the hub is left alone.
const Settle = settle
