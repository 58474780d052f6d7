// Package conversion converts add-ons between the two versions of their API,
// addon.open-cluster-management.io/v1alpha1 and v1beta1, and
// answers the API server's ConversionReviews with it.
//
// It owns what becomes of every field that the versions do not share. What the
// other version cannot express travels in an annotation, which the way back
// consumes: see the carriers in names. A carrier only ever adds to what the
// object says, never contradicts it, so one that is stale or forged changes
// nothing that could have been said in the version it is read in.
//
// It reads and writes no cluster, keeps no state and knows no schema: fields
// that it does not know stay where they are, and the API server prunes them as
// the CRD says. Its invariant: converting an object and converting the result
// back gives the object, in both directions.
package conversion
