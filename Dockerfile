# The one image: the static binary and nothing else. `make image` builds the
# binary first, so the build fetches nothing.
FROM scratch
COPY bin/kubectl-ocm /kubectl-ocm
# Kubeconfigs of clusters on EKS run it as a credential plugin, by its name.
ENV PATH=/
# No user database here: a number is all that runAsNonRoot can check.
USER 65532:65532
ENTRYPOINT ["/kubectl-ocm"]
