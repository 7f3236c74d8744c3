package river
