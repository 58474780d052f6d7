// Command e2e-kind runs a command, the end-to-end suite, on kind clusters: a hub and
// managed clusters, which it creates before and deletes afterwards, however the command
// or the creation ends. When either fails, it keeps the logs of all nodes.
//
//	e2e-kind [--logs DIR] [--archive FILE]... COMMAND [ARG]...
//
// It owns the clusters, the images in them, and what the command finds in its
// environment: KUBECONFIG with the contexts hub, cluster1, cluster2 and so on, and
// E2E_ENVIRONMENT and E2E_HOST, which e2e/doc.go explains. What runs on the clusters is the
// command's business; nothing of the product is installed here.
//
// These variables are for users:
//
//	CLUSTERS    how many managed clusters, 4 by default
//	NODE_IMAGE  the image of the nodes, kind's own by default
//	KEEP        when set, the clusters stay, and the next run uses them again
package main
