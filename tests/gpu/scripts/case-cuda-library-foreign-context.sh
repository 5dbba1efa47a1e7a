# A plain call takes memory of another context of the same GPU, as it takes any GPU's.
. ./lib.sh
. ./library.sh
library contexts-foreign
